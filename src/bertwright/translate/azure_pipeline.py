"""A step of an Azure ML pipeline, completed by what the file says for all steps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

REFERENCE = re.compile(r"\$\{\{\s*([\w.]+)\s*\}\}")
_OWN = {"$schema", "type", "jobs", "inputs", "outputs"}
"""Keys of a pipeline that say nothing about the machines of its steps."""


def within_pipeline(job: Mapping[str, Any], pipeline: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
    """Return a job with the settings that its pipeline, if it is in one, has for every step.

    `values` are the values of the job's inputs, without references to other inputs.
    """
    shared = {str(name): value for name, value in pipeline.items() if name not in _OWN}
    compute = mapping(pipeline, "settings").get("default_compute")
    whole = ({"compute": compute} if compute else {}) | shared | {str(name): value for name, value in job.items()}
    whole["inputs"] = {
        name: {**given, "path": values[name]} if isinstance(given, Mapping) and given.get("path") else given
        for name, given in _resolved(job, pipeline, "inputs").items()
        # A step before it makes what it reads, as the run does.
        if "parent.jobs." not in str(given)
    }
    whole["outputs"] = _resolved(job, pipeline, "outputs")
    return whole


def _resolved(job: Mapping[str, Any], pipeline: Mapping[str, Any], section: str) -> dict[str, Any]:
    """Return a section in which each reference to the same section of the pipeline is replaced by what is there."""
    above = {f"parent.{section}.{name}": given for name, given in mapping(pipeline, section).items()}
    found = {}
    for name, given in mapping(job, section).items():
        reference = REFERENCE.fullmatch(given) if isinstance(given, str) else None
        found[name] = above.get(reference[1], given) if reference else given
    return found


def mapping(job: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return a section of a job with its keys as text; empty if there is none."""
    value = job.get(key)
    return {str(name): inner for name, inner in value.items()} if isinstance(value, Mapping) else {}
