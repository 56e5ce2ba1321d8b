"""Measurements of this machine, kept for the plans that follow: in the user's cache, and nothing in them is secret."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from bertwright.check.machine import gpu_names, torch_build
from bertwright.core.errors import ArtifactError
from bertwright.core.files import make_folder, read_json, sha256_of, write_json
from bertwright.core.processor import default_workers, processor_flags
from bertwright.core.shapes import Number, Text
from bertwright.plan.work import PhaseWork
from bertwright.recipe import Recipe

_MOST = 500
"""Measurements that are kept; the oldest go."""
_TRAIN = ("device", "cpu_isa", "precision", "graph", "attention", "checkpoint_activations", "threads", "deterministic")


@dataclass(frozen=True)
class Measured:
    """Seconds of what a step consists of, on one device of this machine."""

    micro_batch: float
    """A forward and a backward pass over one micro-batch."""
    update: float
    """The optimizer and all else that is done once a step."""
    date: str
    """When it was measured."""


class _Entry(TypedDict):
    micro_batch: Number
    update: Number
    date: Text


_FILE = TypeAdapter(dict[str, _Entry])


def cache_file() -> Path:
    """Where measurements are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bertwright" / "measured.json"


def key_of(recipe: Recipe, work: PhaseWork, sequences: int) -> str:
    """What a measurement is of: machine, network, optimizer, how it is computed, and one rank's micro-batch."""
    machine = [default_workers(), sorted(processor_flags()), gpu_names(), torch_build().version]
    train = recipe.train.model_dump(mode="json", include=set(_TRAIN))
    work_is = [work.phase.length, sequences, round(work.mean_length), round(work.predictions)]
    return sha256_of(
        [machine, recipe.network().model_dump(mode="json"), recipe.optim.model_dump(mode="json"), train, work_is]
    )


def kept_measurement(key: str) -> Measured | None:
    """The measurement of that key; None where there is none."""
    entry = _read().get(key)
    return None if entry is None else Measured(**entry)


def keep(measurements: dict[str, Measured]) -> Path:
    """Add measurements to those that are kept; returns where."""
    path = cache_file()
    make_folder(path.parent)
    before = {key: entry for key, entry in _read().items() if key not in measurements}
    every: dict[str, Any] = {**before, **{key: asdict(value) for key, value in measurements.items()}}
    write_json(path, dict(list(every.items())[-_MOST:]))
    return path


def today() -> str:
    """The date of now."""
    return datetime.now(UTC).date().isoformat()


def _read() -> dict[str, _Entry]:
    # A cache that cannot be read is none: what was in it is measured again.
    with suppress(ArtifactError, FileNotFoundError, ValidationError):
        return _FILE.validate_python(read_json(cache_file()))
    return {}
