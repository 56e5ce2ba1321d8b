"""Schedules in a training: each is continued to the bit, warm-ups in steps are kept, and decays start anywhere."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from safetensors.torch import load_file
from tests.rows import each_row
from tests.unit.train.conftest import PHASES
from tests.unit.train.test_run import Notes, metric_lines, same, weights

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError, Interrupted, RecipeError
from bertwright.optim.config import LambConfig
from bertwright.train.settings.phase_config import PhaseConfig

pytestmark = pytest.mark.heavy

Train = Callable[..., Artifact]
PHASE = PHASES[0]
KINDS = [
    {"kind": "linear", "floor": 0.1},
    {"kind": "poly", "power": 2},
    {"kind": "poly_nvidia", "power": 1, "warmup_before": 1},
    {"kind": "constant"},
    {"kind": "cosine", "floor": 0.1},
    {"kind": "wsd", "decay": 0.5, "shape": "linear"},
]


def rates(done: Artifact) -> list[float]:
    return [row["learning_rate"] for row in metric_lines(done.path)]


@pytest.mark.parametrize("schedule", KINDS, ids=lambda s: s["kind"])
def test_stopped_and_continued_it_ends_bit_identical(train: Train, schedule: dict[str, Any]) -> None:
    settings = {"phases": [{**PHASE, "schedule": schedule, "warmup": 2}]}
    undisturbed = train("undisturbed", **settings)
    with pytest.raises(Interrupted):
        train("disturbed", log=Notes(kill_at_row=2), **settings)
    continued = train("disturbed", **settings)
    assert same(weights(continued), weights(undisturbed))
    assert metric_lines(continued.path)[-1] == metric_lines(undisturbed.path)[-1]


def test_a_warmup_in_steps_has_that_length_in_any_phase(train: Train) -> None:
    for steps in (8, 12):
        phase = {**PHASE, "steps": steps, "warmup": 4, "schedule": "constant"}
        done = train(f"{steps}", phases=[phase], log_every=1)
        assert rates(done)[:5] == pytest.approx([2.5e-3, 5e-3, 7.5e-3, 1e-2, 1e-2])


def test_a_warmup_longer_than_its_phase_is_refused(train: Train) -> None:
    unknown = {key: value for key, value in PHASE.items() if key != "steps"}
    with pytest.raises(RecipeError, match=r"train.phases.0: warmup 10,000 is more than the phase's 2 steps; shorten"):
        train(phases=[{**unknown, "samples": 16, "warmup": 10_000}])


@each_row(
    ("wrong", "said"),
    [
        ({"warmup": 13}, r"warmup 13 is more than the phase's 12 steps; shorten it, or give a share below 1"),
        ({"warmup": 1.5}, r"is neither a share below 1 nor a whole number of steps"),
        ({"warmup": True}, r"is neither a share below 1 nor a whole number of steps"),
        ({"warmup": -1}, r"greater than or equal to 0"),
        (
            {"warmup": 8, "schedule": {"kind": "wsd", "decay": 0.5}},
            r"warmup 8 and schedule.decay 0.5 are more than the",
        ),
        ({"schedule": {"kind": "wsd", "decay": 0}}, r"greater than 0"),
        ({"schedule": {"kind": "wsd", "shape": "cosine"}}, r"'linear' or '1-sqrt'"),
        (
            {"warmup": 5, "schedule": {"kind": "poly_nvidia", "warmup_before": 5}},
            r"leaves nothing of warmup 5; lower it",
        ),
        (
            {"schedule": {"kind": "poly_nvidia", "warmup_before": 5}},
            r"is a number of warm-up steps: give warmup in steps",
        ),
        ({"schedule": {"kind": "cosine", "floor": 1.1}}, r"less than or equal to 1"),
        ({"schedule": {"kind": "poly", "power": 0}}, r"greater than 0"),
        ({"schedule": {"kind": "constant", "floor": 0.1}}, r"Extra inputs are not permitted"),
    ],
)
def test_wrong_values_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        PhaseConfig.model_validate(PHASE | wrong)


@each_row("steps", [0, 0.0])
def test_no_warm_up_is_the_same_setting_however_it_is_written(steps: float) -> None:
    config = PhaseConfig.model_validate(PHASE | {"warmup": steps})
    assert type(config.warmup) is float and config.warmup_steps(12) == 0


def test_a_decay_is_started_from_any_checkpoint_of_a_stable_part(train: Train) -> None:
    """One stable phase; from two of its checkpoints decays of two lengths, with weights and moments taken over."""
    stable = {**PHASE, "schedule": "constant", "steps": 12}
    whole = train("stable", phases=[stable], optim=LambConfig())
    decay = {**stable, "restart_bias_correction": False, "warmup": 0.0, "schedule": {"kind": "wsd", "decay": 1.0}}
    for step, steps in ((8, 6), (12, 10)):
        start = whole.path / "checkpoints" / f"step-{step:09d}"
        branch = train(f"branch{step}", phases=[{**decay, "steps": steps}], init_from=start, optim=LambConfig())
        assert rates(branch) == pytest.approx([1e-2 * (1 - ((k + 1) / steps) ** 0.5) for k in range(0, steps, 2)])
        first = metric_lines(branch.path)[0]["mlm_loss"]
        assert abs(first - metric_lines(whole.path)[step // 2 - 1]["mlm_loss"]) < 0.5
        assert updates(branch, steps) == step + steps


def moments(done: Artifact, step: int) -> dict[str, torch.Tensor]:
    return load_file(done.path / "checkpoints" / f"step-{step:09d}" / "optimizer.safetensors")


def updates(done: Artifact, step: int) -> int:
    """What the bias correction knows after a step."""
    return int(moments(done, step)["step"])


@pytest.mark.parametrize(("restart", "expected"), [(True, 6), (False, 18)])
def test_a_hand_over_restarts_the_bias_correction_or_goes_on(train: Train, restart: bool, expected: int) -> None:
    done = train(phases=[PHASE, {**PHASES[1], "restart_bias_correction": restart}])
    assert updates(done, 18) == expected


@pytest.mark.parametrize(("restart", "expected"), [(True, 6), (False, 18)])
def test_init_from_a_checkpoint_may_restart_bias_correction(train: Train, restart: bool, expected: int) -> None:
    """With its moments in both cases; the rates are those of the phase."""
    first = train("first", phases=[PHASE])
    phase = {**PHASES[1], "restart_bias_correction": restart}
    done = train("next", phases=[phase], init_from=first.path / "checkpoints" / "step-000000012")
    assert updates(done, 6) == expected
    before, after = (moments(*each) for each in ((first, 12), (done, 6)))
    # Six updates keep 0.999^6 of the average of squares and add to it; from 0 they would make about half of it.
    assert all(bool((after[name] >= 0.99 * square).all()) for name, square in before.items() if "exp_avg_sq" in name)
    assert rates(done) == rates(train("both", phases=[PHASE, phase]))[-3:]


def test_a_start_from_a_finished_training_has_no_updates(train: Train) -> None:
    first = train("first", phases=[PHASE])
    assert updates(train("next", phases=[PHASES[1]], init_from=first.path), 6) == 6
    assert updates(train("layers", phases=[PHASES[1]], init_from=first.path, init_layers=[1]), 6) == 6


def test_a_phase_that_goes_on_counting_is_continued_to_the_bit(train: Train) -> None:
    phases = [PHASE, {**PHASES[1], "restart_bias_correction": False}]
    undisturbed = train("undisturbed", phases=phases)
    for row in (6, 8):
        with pytest.raises(Interrupted):
            train(f"run{row}", phases=phases, log=Notes(kill_at_row=row))
        assert same(weights(train(f"run{row}", phases=phases)), weights(undisturbed))


def test_a_stable_phase_ended_early_continues_into_its_decay(train: Train) -> None:
    stable = {**PHASE, "schedule": "constant"}
    decay = {**PHASE, "warmup": 0.0, "steps": 6, "schedule": {"kind": "wsd", "decay": 1.0, "shape": "linear"}}
    with pytest.raises(RuntimeError):
        train("run", phases=[stable, decay], log=Notes(kill_at_row=3, error=RuntimeError))
    done = train("run", phases=[{**stable, "end_after": 8}, decay])
    assert done.counts["phase_ends"] == [8, 6]
    assert rates(done)[-4:] == pytest.approx([1e-2, 1e-2 * 5 / 6, 1e-2 * 3 / 6, 1e-2 * 1 / 6])


def test_nothing_to_go_on_counting_from_is_refused(train: Train) -> None:
    goes_on = {**PHASE, "restart_bias_correction": False}
    with pytest.raises(
        ValidationError, match=r"needs a number of updates to continue from: set init_from to a checkpoint, or"
    ):
        train(phases=[goes_on])
    done = train("done", phases=[PHASE])
    with pytest.raises(ArtifactError, match=r"needs optimizer moments, but train.init_from .* has only weights"):
        train("next", phases=[goes_on], init_from=done.path)
