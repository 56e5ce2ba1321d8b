"""Disk by stage: what a run's folder will hold at most, and in the end; finished stages as they are."""

from __future__ import annotations

from collections.abc import Sequence

from bertwright.check.resources import checkpoint_bytes, examples_bytes, run_bytes
from bertwright.plan.data import Data
from bertwright.plan.hours import times
from bertwright.plan.work import PhaseWork
from bertwright.recipe import Recipe

_PACKED = 0.35
"""Share of its text that a corpus takes when it is made: zstd of prose."""


def disk_of(recipe: Recipe, data: Data) -> dict[str, float | None]:
    """Bytes that each stage has on disk at most, about, while it is made; None where they follow from a text of which
    nothing is known."""
    expected = run_bytes(recipe, data.text)
    return {stage: data.disk.get(stage, expected.get(stage)) for stage in _stages(recipe, data)}


def disk_left(recipe: Recipe, data: Data, works: Sequence[PhaseWork]) -> dict[str, float | None]:
    """Bytes of each stage when the run is over, about: without its scratch, and without the checkpoints that went."""
    text, each, train = data.text, checkpoint_bytes(recipe), recipe.train
    # The last of each phase stays; the best one is nearly always among the newest.
    kept = train.keep_checkpoints + len(works) - 1
    if None not in [work.steps for work in works]:
        kept = min(kept, sum(times(train.checkpoint_every, work.steps or 1) for work in works))
    left = {
        "corpus": None if text is None else _PACKED * text,
        "examples": None if text is None else examples_bytes(recipe, text),
        "train": each * kept + 4.0 * recipe.network().parameters,
        "export": 4.0 * recipe.network().parameters,
    }
    return {stage: data.disk.get(stage, left[stage]) for stage in _stages(recipe, data)}


def _stages(recipe: Recipe, data: Data) -> list[str]:
    stages = ["examples", "train", "export"]
    # Of examples that were made elsewhere the corpus may have stayed there.
    if recipe.corpus is not None and ("corpus" in data.disk or "examples" not in data.disk):
        stages.insert(0, "corpus")
    return stages
