"""The few numbers of a run that programs compare: summary.json."""

from __future__ import annotations

import hashlib
from typing import Any

from bertwright.core.config import Identity
from bertwright.report.config import VERSION, ReportConfig, sections
from bertwright.report.facts import SCORES, Facts

"""Of the report: raised when the same artifacts give another page or other numbers."""


def summary(facts: Facts, config: ReportConfig) -> dict[str, Any]:
    """Losses in nats, accuracies and shares from 0 to 1, `seconds` over all stages.

    `nsp_accuracy` and `nsp_majority` are null where no next sentence was trained. The report stands among the stages
    without seconds of its own: it would never be the same twice. `unfinished` is there where training has not ended.
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
    inputs = {name: artifact.fingerprint for name, artifact in facts.stages.items()}
    report = Identity("report", VERSION, sections(config), inputs)
    return {
        "title": facts.title,
        **({"unfinished": dict(facts.unfinished)} if facts.unfinished else {}),
        **{name: facts.scores[name] for name in SCORES},
        "parameters": train["parameters"],
        "steps": train["steps"],
        "tokens_seen": train["tokens_seen"],
        "tokens_per_second": train["tokens_per_second"],
        "seconds": round(sum(stage["seconds"] for stage in stages.values()), 3),
        "recipe_sha256": hashlib.sha256(facts.recipe.encode()).hexdigest(),
        "stages": {**stages, "report": {"version": VERSION, "fingerprint": report.fingerprint}},
    }
