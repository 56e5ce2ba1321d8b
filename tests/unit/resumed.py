"""A training that is stopped in the middle and continued, for tests of tasks."""

from pathlib import Path

import pytest
from tests.unit.train.test_run import Notes, metric_lines, same, weights

from bertwright import Recipe, run
from bertwright.core.artifact import open_artifact
from bertwright.core.errors import Interrupted
from bertwright.core.log import SILENT

STAGES = ("vocab", "examples", "train")


def assert_resumes(wanted: Recipe, folder: Path, row: int) -> None:
    """A training that logs each step, and is stopped at a row of its metrics, ends with the weights and rows of one
    that is not."""
    run(wanted, folder / "one", STAGES, SILENT)
    with pytest.raises(Interrupted):
        run(wanted, folder / "two", STAGES, Notes(kill_at_row=row))
    run(wanted, folder / "two", STAGES, SILENT)
    one, two = (open_artifact(folder / name / "train") for name in ("one", "two"))
    assert same(weights(one), weights(two))
    rows = [[{**row, "saved": None} for row in metric_lines(each.path)] for each in (one, two)]
    assert rows[0] == rows[1], "but for the checkpoint of the stop"
