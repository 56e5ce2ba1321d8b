"""The time that is left of a run, reckoned by hand."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from bertwright.train.monitor.step_stats import StepStats, full_times, time_left
from bertwright.train.settings.forecast import Forecast
from bertwright.train.settings.phases import Phase
from bertwright.train.state import State

FIRST = {
    "index": 0, "steps": 100, "room": 1000, "heldout_room": 500, "evaluate_every": 50, "checkpoint_every": 30,
    "budget": 0.0,
}  # fmt: skip
SECOND = {
    "index": 1, "steps": 10, "room": 4000, "heldout_room": 2000, "evaluate_every": 10, "checkpoint_every": 10,
    "budget": 0.0,
}  # fmt: skip


@pytest.fixture
def phases() -> list[Any]:
    return [SimpleNamespace(**phase, times=partial(Phase.times, None)) for phase in (FIRST, SECOND)]


def test_remaining_time_covers_phases_scores_and_checkpoints(phases: list[Any]) -> None:
    forecast = Forecast(phases, scored_after=6000)
    forecast.record_scoring(phases[0], 5.0)  # 0.01 s a token of room
    forecast.saving = 3.0
    training = 60 * 2.0 + 10 * 2.0 * 4
    scores = 2 * 5.0 + 20.0 + 60.0
    saves = 3 * 3.0 + 3.0  # after steps 60, 90, 100 and at the end
    assert forecast.remaining(phases[0], 40, 2.0) == pytest.approx(training + scores + saves)


def test_scoring_is_a_third_of_training_until_measured(phases: list[Any]) -> None:
    assert Forecast(phases[:1]).remaining(phases[0], 90, 2.0) == pytest.approx(10 * 2.0 + 500 * 0.002 / 3)


def test_at_the_end_of_the_last_phase_only_what_follows_is_left(phases: list[Any]) -> None:
    forecast = Forecast(phases, scored_after=600)
    assert forecast.remaining(phases[1], 10, 4.0) == pytest.approx(600 * 0.001 / 3)
    assert Forecast(phases).remaining(phases[1], 10, 4.0) == 0


def test_a_phase_with_a_budget_of_time_takes_no_longer_than_that(phases: list[Any]) -> None:
    phases[0].budget = 100.0
    forecast = Forecast(phases[:1])
    # 30 of 100 seconds are left, 15 steps of two seconds; one score (after step 50) at a third of training.
    assert forecast.remaining(phases[0], 40, 2.0, spent=70.0) == pytest.approx(15 * 2.0 + 2 * 500 * 0.002 / 3)
    assert forecast.remaining(phases[0], 98, 2.0, spent=70.0) == pytest.approx(2 * 2.0 + 500 * 0.002 / 3)


def test_the_interval_covers_recent_fast_and_slow_parts(phases: list[Any]) -> None:
    forecast = Forecast(phases[:1], saving=3.0)
    forecast.record_scoring(phases[0], 5.0)
    # 20 steps in ten parts of two: single steps of 1 and 9 seconds meet in the same part and say nothing.
    forecast.record_steps(phases[0], [2.0] * 8 + [1.0, 3.0] + [2.0] * 4 + [3.0, 4.0] + [1.5] * 4)
    rest = 5.0 + 3.0  # of the last score and the last checkpoint
    assert forecast.interval(phases[0], 90) == pytest.approx((10 * 1.5 + rest, 10 * 3.5 + rest))
    assert forecast.interval(phases[0], 90)[0] < forecast.remaining(phases[0], 90, 2.0)


def test_one_step_has_no_spread_and_old_ones_are_forgotten(phases: list[Any]) -> None:
    forecast = Forecast(phases[:1], scoring=0.0)
    forecast.record_steps(phases[0], [2.0])
    assert forecast.interval(phases[0], 90) == pytest.approx((20.0, 20.0))
    forecast.record_steps(phases[0], [1.0] * 200)
    assert forecast.interval(phases[0], 90) == pytest.approx((10.0, 10.0))


def test_the_pace_of_one_phase_counts_for_the_next_by_its_room(phases: list[Any]) -> None:
    forecast = Forecast(phases, scoring=0.0)
    forecast.record_steps(phases[0], [1.0, 2.0])
    assert forecast.interval(phases[1], 0) == pytest.approx((10 * 4.0, 10 * 8.0))


def test_steps_of_growing_batches_are_scaled_to_the_full_one() -> None:
    """Three steps of a quarter of the batch and one of all of it, each as fast for its sequences as the others."""
    batches = SimpleNamespace(full=32, at=lambda step: 8 if step < 9 else 32)
    phase: Any = SimpleNamespace(loader=SimpleNamespace(settings=SimpleNamespace(batches=batches)))
    paces = list[float]()
    forecast: Any = SimpleNamespace(
        record_steps=lambda _, seconds: paces.extend(seconds),
        interval=lambda *_: (0.0, 100.0),
        remaining=lambda phase, step, pace, spent: pace,
    )
    window = StepStats(steps=4, times=[1.0, 1.0, 1.0, 4.0])
    state = State(data_step=10, total_steps=10)
    left = time_left(forecast, phase, state, full_times(phase, state, window))
    assert paces == [4.0] * 4 and left["remaining_seconds"] == 4.0
