"""The few numbers of a run that programs compare: summary.json."""

from __future__ import annotations

from typing import Any

from bertwright.report.facts import Facts

SCORES = (
    "mlm_loss",
    "mlm_accuracy",
    "perplexity",
    "unigram_loss",
    "commonest_accuracy",
    "nsp_accuracy",
    "nsp_majority",
)


def summary(facts: Facts) -> dict[str, Any]:
    """Losses in nats, accuracies and shares from 0 to 1, `seconds` over all stages.

    `nsp_accuracy` and `nsp_majority` are null where no next sentence was trained.
    """
    train = facts.counts("train")
    stages = {
        name: {
            "version": artifact.manifest["version"],
            "fingerprint": artifact.fingerprint,
            "seconds": artifact.manifest["seconds"],
        }
        for name, artifact in facts.stages.items()
    }
    return {
        "title": facts.title,
        **{name: facts.counts("evaluate")[name] for name in SCORES},
        "parameters": train["parameters"],
        "steps": train["steps"],
        "tokens_seen": train["tokens_seen"],
        "tokens_per_second": train["tokens_per_second"],
        "seconds": round(sum(stage["seconds"] for stage in stages.values()), 3),
        "stages": stages,
    }
