"""Phases resolved against the data: budgets become steps, and rates, intervals and held-out batches follow."""

import math
from typing import Any

import pytest
from tests.conftest import Prepared
from tests.reference.unions import sections_of
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.optim.config import ScheduleConfig
from bertwright.train.config import TrainConfig
from bertwright.train.settings.phases import Phase, resolve_phases, samples_of_epochs

PHASE = {"length": 16, "batch": 8, "learning_rate": 1e-2}


def resolved(prepared: Prepared, phase: dict[str, Any], **train: Any) -> Phase:
    config = TrainConfig.model_validate({"phases": [PHASE | phase], **train})
    return resolve_phases(config, prepared.examples, prepared.vocab)[0]


def test_a_budget_in_any_unit_becomes_steps(prepared: Prepared) -> None:
    assert resolved(prepared, {"steps": 7}).steps == 7
    assert resolved(prepared, {"samples": 17}).steps == 3, "a begun step counts whole"
    loader = resolved(prepared, {"steps": 1}).loader
    first, second = loader.examples.sizes
    assert resolved(prepared, {"epochs": 1.5}).steps == math.ceil((first + 0.5 * second) / 8)
    assert resolved(prepared, {"tokens": 10_000}).steps == math.ceil(10_000 / (loader.examples.mean_tokens * 8))


@each_row("length", [{"samples": 64}, {"tokens": 1000}, {"epochs": 0.1}])
def test_an_end_after_the_phase_is_refused_in_any_unit(prepared: Prepared, length: dict[str, Any]) -> None:
    steps = resolved(prepared, length).steps
    assert resolved(prepared, {**length, "end_after": steps}).steps == steps
    said = rf"train\.phases\.0: end_after {steps + 1} is more than the phase's {steps} steps; lower it, or leave it out"
    with pytest.raises(RecipeError, match=said):
        resolved(prepared, {**length, "end_after": steps + 1})


@each_row("warmup", [(), ((0, 4), (30, 8))])
def test_epochs_end_where_their_last_example_is_read(prepared: Prepared, warmup: tuple[tuple[int, int], ...]) -> None:
    every = {"evaluate_every": "epoch", "checkpoint_every": "epoch", "log_every": "epoch"}
    phase = resolved(prepared, {"epochs": 3.5, "batch_warmup": warmup}, **every)
    sizes, batches = phase.loader.examples.sizes, phase.loader.settings.batches
    expected, read, left = [], 0, 0
    for step in range(1, phase.steps + 1):  # counted one example after another
        for _ in range(batches.at(step - 1)):
            left += 1
            if left == sizes[read % len(sizes)]:
                read, left = read + 1, 0
                expected.append(step)
    assert len(expected) == 3 and phase.steps not in expected
    assert [step for step in range(1, phase.steps + 1) if phase.due("epoch", step)] == expected
    assert phase.times("epoch", 0, phase.steps) == 4, "and once at the end"
    assert phase.times("epoch", expected[0], expected[1]) == 1
    assert (phase.times(10, 0, 25), phase.times(10, 10, 25)) == (3, 2)


def test_epochs_reuse_the_passes_in_turn() -> None:
    assert samples_of_epochs(2.5, [10, 20]) == 10 + 20 + 5
    assert samples_of_epochs(0.25, [8]) == 2


def test_warm_up_is_a_share_of_the_phase(prepared: Prepared) -> None:
    assert resolved(prepared, {"steps": 30, "warmup": 0.25}).warmup_steps == 7.5


@each_row("schedule", sections_of(ScheduleConfig))
@each_row("length", [{"steps": 30}, {"samples": 240}, {"epochs": 0.3}])
def test_an_early_end_changes_neither_rates_nor_intervals(
    prepared: Prepared, schedule: Any, length: dict[str, Any]
) -> None:
    given = {**length, "warmup": 0.25, "schedule": {"kind": schedule.model_fields["kind"].default}}
    whole, early = resolved(prepared, given), resolved(prepared, given | {"end_after": 10})
    assert early.steps == 10 < whole.steps == early.schedule_steps
    assert early.warmup_steps == whole.warmup_steps == pytest.approx(0.25 * whole.steps)
    assert [early.rate(step, 0.0) for step in range(10)] == [whole.rate(step, 0.0) for step in range(10)]
    assert (early.evaluate_every, early.checkpoint_every) == (whole.evaluate_every, whole.checkpoint_every)


def test_default_intervals_are_tenths_of_the_phase(prepared: Prepared) -> None:
    phase = resolved(prepared, {"steps": 95})
    assert (phase.evaluate_every, phase.checkpoint_every) == (10, 10)
    given = resolved(prepared, {"steps": 95}, evaluate_every=3, checkpoint_every=4)
    assert (given.evaluate_every, given.checkpoint_every) == (3, 4)
    assert resolved(prepared, {"steps": 3}).evaluate_every == 1


def test_the_held_out_batches_are_the_same_every_time(prepared: Prepared) -> None:
    one, other = (resolved(prepared, {"steps": 1}, heldout_sequences=10).heldout() for _ in range(2))
    assert sum(batch.counts.sequences for batch in one) == 10
    for a, b in zip(one, other, strict=True):
        assert (a.token_ids == b.token_ids).all() and (a.prediction_positions == b.prediction_positions).all()


def test_phases_draw_different_batches(prepared: Prepared) -> None:
    config = TrainConfig.model_validate({"phases": [PHASE | {"steps": 1}] * 2})
    first, second = (
        phase.loader.step(0, 0, 1)[0] for phase in resolve_phases(config, prepared.examples, prepared.vocab)
    )
    assert list(first.token_ids) != list(second.token_ids)


def test_a_length_without_plans_is_refused(prepared: Prepared) -> None:
    with pytest.raises(Exception, match="24"):
        resolved(prepared, {"length": 24, "steps": 1})
