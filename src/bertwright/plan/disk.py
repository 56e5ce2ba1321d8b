"""Disk by stage: what a run's folder will hold, finished stages as they are."""

from __future__ import annotations

from bertwright.check.resources import run_bytes
from bertwright.plan.data import Data
from bertwright.recipe import Recipe


def disk_of(recipe: Recipe, data: Data) -> dict[str, float | None]:
    """Bytes that each stage writes, about; None where they follow from a text of which nothing is known."""
    stages = ["corpus"] * (recipe.corpus is not None) + ["examples", "train", "export"]
    expected = run_bytes(recipe, data.text)
    return {stage: data.disk.get(stage, expected.get(stage)) for stage in stages}
