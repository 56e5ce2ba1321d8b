"""The forecast of a run, stored in its folder before training begins, for the report to grade (`report.forecast`)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from bertwright.core.distributed import rank_and_world, ranks_here
from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_json, sha256_of, write_json
from bertwright.core.numbers import duration, size_of
from bertwright.pipeline.arguments import FORECAST
from bertwright.pipeline.lineage import matching_artifacts
from bertwright.pipeline.run_folder import RunFolder
from bertwright.recipe import Recipe

if TYPE_CHECKING:
    from bertwright.forecast_shapes import Plan


def keep_forecast(recipe: Recipe, folder: RunFolder) -> Plan | None:
    """Write the forecast for the rest of the run to `forecast.json`, unless it exists or training has begun.

    A forecast of another recipe is replaced. Returns the plan that was written, or None.
    """
    path, recipe_hash = folder.path / FORECAST, sha256_of(recipe.to_json())
    if folder.begun:
        return None
    # An unreadable forecast is replaced too.
    with suppress(ArtifactError, FileNotFoundError):
        if read_json(path).get("recipe_sha256") == recipe_hash:
            return None
    # Imported here because it needs numpy and is needed only once per run.
    from bertwright.estimate.machine import this_machine
    from bertwright.plan.plan import make_plan

    here = ranks_here()
    machine = replace(this_machine(recipe, here), nodes=max(1, rank_and_world()[1] // here))
    plan = make_plan(recipe, matching_artifacts(recipe, folder.path), machine)
    kept = {"recipe_sha256": recipe_hash, **plan}
    write_json(path, {**kept, "sha256": sha256_of(kept)})
    return plan


def forecast_line(plan: Plan) -> str:
    """The forecast as one line for the log."""
    memory = f"{size_of(plan['memory_bytes'])} of memory for each rank"
    if plan["low_hours"] is None or plan["high_hours"] is None:
        return f"forecast: {memory}; the time is unknown"
    low, high = (duration(3600 * hours) for hours in (plan["low_hours"], plan["high_hours"]))
    return f"forecast: {low} to {high}, {memory} (for details, run bertwright plan)"
