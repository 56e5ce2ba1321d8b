"""The metadata of a model card, by which huggingface.co finds, filters and compares models: the YAML at its beginning.

Only what the manifests tell or the recipe states is in it. A score stands there if the hub has a name for its kind.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from bertwright.export.config import ExportConfig
from bertwright.export.hub_terms import LICENCES, METRICS, NAME, language_codes
from bertwright.export.origin import Origin
from bertwright.model.importers.origin import hub_name
from bertwright.tasks.section import TaskSection


def metadata(
    config: ExportConfig,
    origin: Origin,
    section: TaskSection,
    tag: str,
    scores: Mapping[str, Any],
    init: Mapping[str, str] | None,
) -> dict[str, Any]:
    """The values of the card's metadata by key, without empty ones.

    `tag` is the family of the network, and `init` the count of what training started from.
    """
    measured = _measured(section, scores)
    about: dict[str, Any] = {
        "language": language_codes(origin.language),
        **_licence(config),
        "library_name": section.library,
        "pipeline_tag": section.pipeline,
        "tags": [tag, "bertwright"],
        "datasets": list(config.datasets),
        "base_model": config.base_model or base_model_of(init),
        "base_model_license": (init or {}).get("licence", ""),
        "metrics": list(dict.fromkeys(each["type"] for each in measured)),
        "model-index": _results(config.name, section.pipeline, origin.heldout, measured),
    }
    return {key: value for key, value in about.items() if value}


def front_matter(about: Mapping[str, Any]) -> list[str]:
    """The lines of the card's YAML."""
    # Values as JSON, which is YAML: Norwegian's `no` would mean false, and a line of a value could end the block. Nor
    # may a name be HTML for a program that takes the block for Markdown.
    values = ((key, json.dumps(value).replace("<", "\\u003c")) for key, value in about.items())
    return ["---", *(f"{key}: {value}" for key, value in values), "---"]


def base_model_of(init: Mapping[str, str] | None) -> str:
    """The hub's name of the network that training started from: the one that it was imported under, or that of its
    folder in the cache of huggingface_hub; "" if neither is known."""
    if init is None:
        return ""
    # A name of one part is that of a folder, of which the hub may have another.
    source = init.get("source", "")
    return source if "/" in source and re.fullmatch(NAME, source) else hub_name(PurePath(init["folder"]))


def _licence(config: ExportConfig) -> dict[str, str]:
    if config.licence in LICENCES:
        return {"license": config.licence}
    if not config.licence:
        # The licences of the texts are not one for the model: only who publishes it can grant one.
        return {"license": "unknown"}
    return {"license": "other", "license_name": config.licence, "license_link": config.licence_link}


def _measured(section: TaskSection, scores: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The scores that have a name on the hub, each with its value and our name; baselines are not the model's."""
    values = ((score, scores.get(score.key)) for score in section.compared if score.best and score.key in METRICS)
    return [
        {"type": METRICS[score.key], "value": value, "name": score.title[0].upper() + score.title[1:]}
        for score, value in values
        if isinstance(value, int | float) and math.isfinite(value)
    ]


def _results(name: str, task: str, measured_on: str, measured: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    if not measured:
        return []
    # The held-out part of somebody's texts has no name on the hub, and the specification has no other word for that.
    dataset = {"type": "unknown", "name": measured_on, "split": "heldout"}
    return [{"name": name, "results": [{"task": {"type": task}, "dataset": dataset, "metrics": list(measured)}]}]
