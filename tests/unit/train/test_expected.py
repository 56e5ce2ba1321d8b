"""Bands of the training loss: what lies outside is said in the log, and in the row of the same step."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row
from tests.unit.train.test_run import Notes, metric_lines

from bertwright.core.artifact import Artifact
from bertwright.core.errors import RecipeError
from bertwright.train.config import ExpectedLoss
from bertwright.train.monitor.expected import outside

BANDS = (ExpectedLoss(step=1, low=5.0, high=7.0), ExpectedLoss(step=10, low=3.0, high=4.0))


def row(step: int, mlm: float, nsp: float = 0.5) -> dict[str, Any]:
    return {"total_steps": step, "mlm_loss": mlm, "nsp_loss": nsp, "heldout_mlm_loss": 100.0}


@each_row(
    ("step", "steps", "mlm", "says"),
    [
        (2, 2, 5.0, ""),
        (2, 2, 4.0, "step 2: the training loss 4.500 is below the 5 to 7 that the recipe expects at step 1"),
        (8, 4, 50.0, ""),  # no band between 4 and 8
        (12, 4, 3.6, "step 12: the training loss 4.100 is above the 3 to 4 that the recipe expects at step 10"),
        (12, 4, math.nan, "step 12: the training loss nan is outside the 3 to 4"),
        (14, 2, 9.0, ""),
    ],
)
def test_the_first_row_at_or_after_a_step_is_judged(step: int, steps: int, mlm: float, says: str) -> None:
    found = outside(BANDS, row(step, mlm), steps)
    assert found.startswith(says) and bool(found) == bool(says)


def test_a_step_with_nothing_to_predict_is_not_judged() -> None:
    assert outside(BANDS, {"total_steps": 1, "mlm_loss": None, "nsp_loss": None}, 1) == ""
    assert "loss 0.500 is below" in outside(BANDS, {"total_steps": 1, "mlm_loss": None, "nsp_loss": 0.5}, 1)


def test_a_band_is_one() -> None:
    with pytest.raises(RecipeError, match="low 3 is not below high 2"):
        ExpectedLoss(step=1, low=3, high=2)


def test_a_run_that_leaves_its_band_says_so_at_that_step(train: Callable[..., Artifact], tmp_path: Path) -> None:
    notes = Notes()
    bands = [{"step": 3, "low": 0.1, "high": 0.2}, {"step": 13, "low": 0.1, "high": 50.0}]
    done = train(expected=bands, log=notes)
    marked = {line["total_steps"]: line["outside_band"] for line in metric_lines(done.path) if "outside_band" in line}
    assert list(marked) == [4]
    assert [line for line in notes.lines if "expects" in line] == [f"train: {marked[4]}"]
    plain = train("plain")
    assert plain.counts["weights"] == done.counts["weights"] and plain.fingerprint == done.fingerprint
