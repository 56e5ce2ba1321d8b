"""Disk by stage: the peak size of a run's folder and its final size; finished stages count with their actual size."""

from __future__ import annotations

from collections.abc import Sequence

from bertwright.check.known_data import Data
from bertwright.check.resources import checkpoint_bytes, examples_bytes, run_bytes
from bertwright.check.work import PhaseWork
from bertwright.plan.hours import times
from bertwright.recipe import Recipe

_PACKED = 0.35
"""Size of a finished corpus relative to its text: zstd of prose."""


def disk_of(recipe: Recipe, data: Data) -> dict[str, float | None]:
    """Approximate peak bytes on disk of each stage while it runs; None if they depend on a text of unknown size."""
    expected = run_bytes(recipe, data.text)
    return {stage: data.disk.get(stage, expected.get(stage)) for stage in _stages(recipe, data)}


def disk_left(recipe: Recipe, data: Data, works: Sequence[PhaseWork]) -> dict[str, float | None]:
    """Approximate bytes of each stage after the run: without scratch files and deleted checkpoints."""
    text, each, train = data.text, checkpoint_bytes(recipe), recipe.train
    # The last checkpoint of each phase stays; the best one is nearly always among the newest.
    kept = train.keep_checkpoints + len(works) - 1
    if None not in [work.steps for work in works]:
        kept = min(kept, sum(times(train.checkpoint_every, work.steps or 1, work.epochs) for work in works))
    left = {
        "corpus": None if text is None else _PACKED * text,
        "examples": None if text is None else examples_bytes(recipe, text),
        "train": each * kept + 4.0 * recipe.network().parameters,
        "export": 4.0 * recipe.network().parameters,
    }
    return {stage: data.disk.get(stage, left[stage]) for stage in _stages(recipe, data)}


def _stages(recipe: Recipe, data: Data) -> list[str]:
    stages = ["examples", "train", "export"]
    # If the examples were made elsewhere, the corpus may not be here.
    if recipe.corpus is not None and ("corpus" in data.disk or "examples" not in data.disk):
        stages.insert(0, "corpus")
    return stages
