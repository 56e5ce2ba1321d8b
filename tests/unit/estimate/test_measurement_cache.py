"""The forecast of a run is kept before training begins, and not touched after."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright import Recipe, RunFolder, run
from bertwright.core.files import read_json, sha256_of
from bertwright.forecast_shapes import PLAN
from bertwright.pipeline.arguments import step_bands
from bertwright.pipeline.forecast import forecast_line, keep_forecast

Load = Callable[..., Recipe]


def test_a_run_keeps_the_forecast_made_before_it_began(trained: Path, load: Load) -> None:
    kept = read_json(trained / "forecast.json")
    assert kept.pop("sha256") == sha256_of(kept) and len(kept.pop("recipe_sha256")) == 64
    plan = PLAN.validate_python(kept)
    assert set(plan["hours"]) == {"corpus", "vocab", "examples", "train", "evaluate", "export"}, "nothing was finished"
    assert plan["phases"][0]["steps"] == 3
    assert keep_forecast(load("model.dropout=0.3"), RunFolder(trained)) is None, "training has begun"


def test_another_recipe_before_training_has_another_forecast(load: Load, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    first = keep_forecast(load(), folder)
    assert first and keep_forecast(load(), folder) is None
    longer = keep_forecast(load("train.phases.0.steps=30"), folder)
    assert longer and longer["phases"][0]["steps"] == 30
    (tmp_path / "forecast.json").write_text("{")
    assert keep_forecast(load("train.phases.0.steps=30"), folder) == longer, "a damaged one says nothing"


def test_steps_have_the_band_of_the_hours(trained: Path, tmp_path: Path) -> None:
    """From half to double the forecast of a step: nothing was measured."""
    plan = PLAN.validate_python(read_json(trained / "forecast.json"))
    assert step_bands(trained) == tuple(
        pytest.approx((phase["step_seconds"] / 2, phase["step_seconds"] * 2)) for phase in plan["phases"]
    )
    assert step_bands(tmp_path) == ()
    (tmp_path / "forecast.json").write_text("{")
    assert step_bands(tmp_path) == (), "the report says that it is damaged"


def test_only_training_has_a_forecast(load: Load, tmp_path: Path, trained: Path) -> None:
    out = tmp_path / "new"
    run(load(), out, ["corpus"])
    assert not (out / "forecast.json").exists()
    for stage in ("corpus", "vocab", "examples"):
        shutil.copytree(trained / stage, out / stage, dirs_exist_ok=True)
    plan = keep_forecast(load(), RunFolder(out))
    assert plan and plan["basis"] == "examples" and set(plan["hours"]) == {"train", "evaluate", "export"}


@each_row(
    ("low", "high", "line"),
    [
        (0.005, 0.02, "forecast: 18.0 s to 1 min 12 s, 1.5 GB of memory"),
        (3.0, 240.0, "forecast: 3 h 0 min to 10 days 0 h, 1.5 GB of memory"),
        (None, None, "forecast: 1.5 GB of memory"),
    ],
)
def test_the_log_has_one_line(low: float | None, high: float | None, line: str) -> None:
    told = forecast_line({"memory_bytes": 1.5e9, "low_hours": low, "high_hours": high})  # type: ignore[typeddict-item]
    rest = " for each rank; the time is unknown" if low is None else " for each rank (for details, run bertwright plan)"
    assert told == line + rest
