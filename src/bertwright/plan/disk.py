"""Disk by stage: what a run's folder will hold, finished stages as they are."""

from __future__ import annotations

from bertwright.check.resources import run_bytes
from bertwright.plan.data import Data
from bertwright.recipe import Recipe


def disk_of(recipe: Recipe, data: Data) -> dict[str, float | None]:
    """Bytes that each stage writes, about; None where they follow from a text of which nothing is known."""
    stages = ["examples", "train", "export"]
    # Of examples that were made elsewhere the corpus may have stayed there.
    if recipe.corpus is not None and ("corpus" in data.disk or "examples" not in data.disk):
        stages.insert(0, "corpus")
    expected = run_bytes(recipe, data.text)
    return {stage: data.disk.get(stage, expected.get(stage)) for stage in stages}
