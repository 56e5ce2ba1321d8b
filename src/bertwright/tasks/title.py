"""What a model is, in a line: its language, family, size and task, and how long it was trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bertwright.core.numbers import rough_duration, short_count
from bertwright.corpus.wikis import wikis
from bertwright.tasks.members import task_of_sealed

FAMILIES = {"bert": "BERT", "modern": "ModernBERT", "distilbert": "DistilBERT"}
"""The name of each family, a value of `model.kind`."""


def model_title(train: Mapping[str, Any], language: str) -> str:
    """What a model is, such as "Hungarian BERT of 4.4 M weights, trained for 2 minutes"; `train` is the manifest of its
    training, `language` its language's code ("": unknown)."""
    counts, settings = train["counts"], train["config"]
    # Missing for a BERT, whose kind is the default.
    family = FAMILIES.get(settings.get("model", {}).get("kind", "bert"), "network")
    named = f"{wikis()[language]} {family}" if language in wikis() else family
    if language and language not in wikis():
        named += f" for the language “{language}”"
    what = task_of_sealed(settings).section.name(f"{named} of {short_count(counts['parameters'])} weights", counts)
    return f"{what} for {rough_duration(training_seconds(counts))}{' so far' if counts.get('unfinished') else ''}"


def training_seconds(counts: Mapping[str, Any]) -> float:
    """The seconds of a training with these counts, scoring and saving included if they were measured."""
    return float(3600 * counts["hours"] if "hours" in counts else counts["train_seconds"])


def start_of(init: Mapping[str, str] | None) -> str:
    """What training started from, and which parts were drawn or left out; `init` is the count of the training."""
    if init is None:
        return "random weights"
    drawn = f"; random weights for {init['drawn']}" if "drawn" in init else ""
    left_out = f"; without its {init['left_out']}" if "left_out" in init else ""
    known = [init[key] if key == "source" else f"licence {init[key]}" for key in ("source", "licence") if key in init]
    # A folder may be moved; the fingerprint identifies the training.
    facts = ", ".join([*known, f"fingerprint {init['fingerprint'][:12]}"])
    return f"{init['folder']} ({facts}){drawn}{left_out}"
