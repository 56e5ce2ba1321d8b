"""The forecast that a run keeps in its folder: the name of its file, and the step times that training compares with."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_typed

FORECAST = "forecast.json"


def step_bands(folder: Path) -> tuple[tuple[float, float], ...]:
    """The bounds of the seconds of a step of each phase, by the forecast in a run folder; empty if it has none, or one
    without hours, or if it is damaged, which the report says."""
    from bertwright.forecast_shapes import PLAN

    with suppress(ArtifactError, FileNotFoundError):
        plan = read_typed(folder / FORECAST, PLAN)
        total, low, high = plan["total_hours"], plan["low_hours"], plan["high_hours"]
        if total and low is not None and high is not None:
            seconds = [phase["step_seconds"] for phase in plan["phases"]]
            return tuple((each * low / total, each * high / total) for each in seconds)
    return ()
