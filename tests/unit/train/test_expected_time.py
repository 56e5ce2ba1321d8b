"""The time of a step beside the forecast made before training: what leaves it is said once."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tests.unit.train.conftest import PHASES
from tests.unit.train.test_run import Notes

from bertwright.core.artifact import Artifact
from bertwright.train.monitor.expected import ENOUGH, ExpectedTime

FIRST: Any = SimpleNamespace(index=0)
SECOND: Any = SimpleNamespace(index=1)
THIRD: Any = SimpleNamespace(index=2)


def test_a_phase_is_judged_once_when_it_has_enough_steps() -> None:
    """By the median: the first step, in which kernels are chosen, says nothing."""
    expected = ExpectedTime([(0.2, 0.8), (1.0, 2.0)])
    assert expected.outside(FIRST, [60.0] + [0.9] * (ENOUGH - 2)) == ""
    assert expected.outside(FIRST, [0.9]) == (
        "phase 0: a step takes 0.9 s, more than the 0.2 to 0.8 s of the forecast; the time left follows the measurement"
    )
    assert expected.outside(FIRST, [50.0] * ENOUGH) == "", "it has been said"
    assert expected.outside(SECOND, [0.5] * ENOUGH).startswith("phase 1: a step takes 0.5 s, less than the 1 to 2 s")
    assert expected.outside(THIRD, [0.5] * ENOUGH) == "", "not forecast"


def test_steps_in_the_band_are_passed_over() -> None:
    assert ExpectedTime([(0.2, 0.8)]).outside(FIRST, [0.2] * ENOUGH) == ""
    assert ExpectedTime().outside(FIRST, [0.2] * ENOUGH) == ""


def test_a_training_that_is_slower_than_forecast_says_so(train: Callable[..., Artifact]) -> None:
    notes = Notes()
    phases = [PHASES[0] | {"steps": ENOUGH + 10}]
    train(phases=phases, log=notes, step_bands=[(0.0, 1e-9)])
    (line,) = [line for line in notes.lines if "forecast" in line]
    assert line.startswith("train: phase 0: a step takes ") and "more than the 0 to 1e-09 s of the forecast" in line
