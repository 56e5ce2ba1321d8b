"""Measurements of this machine, stored in the user's cache for later plans; they contain nothing secret."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from bertwright.core.errors import ArtifactError, BertwrightError, DataError
from bertwright.core.files import make_folder, read_json, sha256_of, write_json
from bertwright.core.resources import default_workers, processor_flags
from bertwright.core.shapes import Number, Text
from bertwright.estimate.machine_facts import gpu_names, torch_build, training_gpus
from bertwright.estimate.work import PhaseWork
from bertwright.recipe import Recipe

_MOST = 500
"""Maximum number of stored measurements; the oldest are dropped."""
_TRAIN = ("device", "cpu_isa", "precision", "graph", "attention", "checkpoint_activations", "threads", "deterministic")


@dataclass(frozen=True)
class Measured:
    """Seconds of the parts of a training step on one device of this machine."""

    micro_batch: float
    """A forward and a backward pass over one micro-batch."""
    update: float
    """The optimizer and everything else done once per step."""
    date: str
    """Date of the measurement."""


class _Entry(TypedDict):
    micro_batch: Number
    update: Number
    date: Text


_FILE = TypeAdapter(dict[str, _Entry])


def cache_file() -> Path:
    """Path of the file with the measurements; `DataError` if the user has no home folder."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bertwright" / "measured.json"
    except RuntimeError as error:
        raise DataError(
            f"there is no folder for measurements ({str(error).rstrip('.')}). Set XDG_CACHE_HOME to a folder that you "
            "may write to."
        ) from error


def key_of(recipe: Recipe, work: PhaseWork, sequences: int) -> str:
    """The key of a measurement: machine, network, teacher, optimizer, computation settings, one rank's micro-batch."""
    # On a GPU the threads hardly matter, and torchrun sets their number for its ranks only.
    threads = "" if training_gpus(recipe) else os.environ.get("OMP_NUM_THREADS", "")
    machine = [default_workers(), threads, sorted(processor_flags()), gpu_names(), torch_build().version]
    train = recipe.train.model_dump(mode="json", include=set(_TRAIN))
    # Rounded, because a text that has grown a little is measured as fast as before.
    work_is: list[Any] = [work.phase.length, sequences, round(work.mean_length), round(work.predictions)]
    work_is += [work.phase.trains] if work.only_rows else []
    networks = [recipe.network().model_dump(mode="json"), *_teacher(recipe)]
    return sha256_of([machine, *networks, recipe.optim.model_dump(mode="json"), train, work_is])


def _teacher(recipe: Recipe) -> list[Any]:
    """What determines the time that a teacher adds: its terms, and its network if that can be read; [] without one."""
    teacher = recipe.task.taught_by
    if teacher is None:
        return []
    from bertwright.model.pretrained_config import read_pretrained  # reads the folders of other programs

    taught = [recipe.task.model_dump(mode="json")]
    with suppress(BertwrightError):  # `check` and the training report it
        taught.append(read_pretrained(teacher).network.model_dump(mode="json"))
    return taught


def read_measurement(key: str) -> Measured | None:
    """The measurement stored under `key`; None if there is none."""
    entry = _read().get(key)
    return None if entry is None else Measured(**entry)


def store_measurements(measurements: dict[str, Measured]) -> Path:
    """Store measurements in addition to those already there; returns the file's path. `DataError` if they cannot be
    written."""
    path = cache_file()
    # Measured again means moved to the end, because the first are the ones that are dropped.
    before = {key: entry for key, entry in _read().items() if key not in measurements}
    every: dict[str, Any] = {**before, **{key: asdict(value) for key, value in measurements.items()}}
    try:
        make_folder(path.parent)
        write_json(path, dict(list(every.items())[-_MOST:]))
    except DataError as error:
        where = "Measurements are written below XDG_CACHE_HOME, or ~/.cache if it is not set."
        raise DataError(f"{error} {where}") from error
    return path


def today() -> str:
    """Today's date (ISO, UTC)."""
    return datetime.now(UTC).date().isoformat()


def _read() -> dict[str, _Entry]:
    # An unreadable cache counts as empty: plans and runs do without it, and its contents can be measured again.
    with suppress(ArtifactError, DataError, OSError, ValidationError):
        return _FILE.validate_python(read_json(cache_file()))
    return {}
