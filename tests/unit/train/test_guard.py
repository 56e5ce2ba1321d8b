"""Bad gradients: dropped, judged by the norms before them, gone back before, left out, and refused in the end."""

import json
import math
import os
import re
import signal
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.rows import each_row
from tests.unit.train.conftest import PHASES
from tests.unit.train.test_run import metric_lines

from bertwright.core import rng
from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.errors import DataError, DivergedError, Interrupted, RecipeError
from bertwright.train import run as loop
from bertwright.train.averaging.averaging import Ema
from bertwright.train.config import GuardConfig
from bertwright.train.guard import loss_limit, norm_limit, record_update
from bertwright.train.state import State, state_of
from bertwright.train.step import StepResult

pytestmark = pytest.mark.heavy

Train = Callable[..., Artifact]
Spoil = Callable[..., None]
GUARD = {"patience": 3, "returns": 1}
SEED = 42


@pytest.fixture
def spoil(monkeypatch: pytest.MonkeyPatch) -> Spoil:
    """`spoil(steps, ...)`: of each phase the updates of these steps are dropped, as if their gradients were bad."""
    original = loop.train_step

    def spoiled(*phases: Iterable[int]) -> None:
        bad = {rng.key(SEED, "dropout", phase, step) for phase, steps in enumerate(phases) for step in steps}

        def train_step(trained: Any, batches: Any, totals: Any, update: Any) -> Any:
            return original(
                trained, batches, totals, replace(update, norm_limit=0.0) if update.dropout_key in bad else update
            )

        monkeypatch.setattr(loop, "train_step", train_step)

    return spoiled


class Lines:
    """A log that remembers, and can ask the process to stop after a number of rows."""

    def __init__(self, stop_at_row: int = 0) -> None:
        self.said, self.rows, self.stop_at_row = list[str](), 0, stop_at_row

    def say(self, message: str) -> None:
        self.said.append(message)

    def progress(self, stage: str, done: float, total: float, unit: str) -> None: ...

    def record(self, row: dict[str, Any]) -> None:
        self.rows += 1
        if self.rows == self.stop_at_row:
            os.kill(os.getpid(), signal.SIGTERM)


def weights(done: Artifact) -> dict[str, torch.Tensor]:
    return load_file(done.file("model/model.safetensors"))


def same(one: Artifact, other: Artifact) -> bool:
    ours, theirs = weights(one), weights(other)
    return all(torch.equal(ours[name], theirs[name]) for name in ours)


def last_row(done: Artifact) -> dict[str, Any]:
    row: dict[str, Any] = json.loads((done.path / "metrics.jsonl").read_text().splitlines()[-1])
    return row


def result(norm: float, loss: float = 1.0, applied: bool = True) -> StepResult:
    return StepResult({}, norm, applied, loss=loss)


@each_row(("key", "limit", "kept"), [("spike", norm_limit, "norms"), ("loss_spike", loss_limit, "losses")])
def test_norms_and_losses_are_compared_with_the_median(key: str, limit: Any, kept: str) -> None:
    guard, state = GuardConfig(**{key: 5, "window": 10}), State()
    for number in range(12):
        assert (limit(guard, state) == math.inf) == (number < 10), "not before there are enough"
        state = record_update(guard, state, result(float(number), float(number)))
    assert getattr(state, kept) == tuple(map(float, range(2, 12))) and limit(guard, state) == 5 * 6.5
    assert (state.norms == ()) != (state.losses == ()), "the other is not judged"
    assert record_update(guard, state, result(1e9, 1e9, applied=False)) == state, "a dropped one counts for nothing"
    off = GuardConfig()
    assert limit(off, state) == math.inf and record_update(off, State(), result(1.0)) == State()


def test_a_spike_is_dropped_and_counted(train: Train) -> None:
    phases = [PHASES[0] | {"steps": 30}]
    done = train(phases=phases, guard={"spike": 1.0, "window": 10}, log_every=1)
    rows = [json.loads(line) for line in (done.path / "metrics.jsonl").read_text().splitlines()]
    assert not any(row["skipped"] for row in rows[:10]) and 5 < sum(row["skipped"] for row in rows) < 20
    assert rows[-1]["optimizer_step"] == 30 - sum(row["skipped"] for row in rows)


@pytest.mark.parametrize("averaging", ["none", {"kind": "ema", "keep": "average"}])
def test_training_rolls_back_and_skips_the_bad_batches(train: Train, spoil: Spoil, averaging: Any) -> None:
    """As a training does in which all batches since the checkpoint are dropped, where their updates do nothing."""
    spoil(range(4, 8))
    settings = {"checkpoint_every": 2, "averaging": averaging}
    expected = train("expected", guard={"patience": 9}, **settings)
    spoil(range(5, 8))
    lines = Lines()
    done = train("gone-back", guard=GUARD, log=lines, **settings)
    assert same(done, expected)
    assert done.counts["left_out"] == [{"phase": 0, "from": 4, "to": 8}]
    assert any(
        "3 updates in a row were dropped: training returns to step-000000004 and skips the batches 4 to 7 of phase 0"
        in line
        for line in lines.said
    )


def test_a_return_undoes_everything_but_the_batches_drawn(train: Train, spoil: Spoil) -> None:
    """After four updates, one that is undone, and three that are dropped: the norms, the losses, the count of updates
    and the loss scale, which has grown since, are those of the checkpoint."""
    spoil(range(5, 8))
    guard = GUARD | {"spike": 1e9, "loss_spike": 1e9, "window": 10}
    precision = {"kind": "fp16", "allow_slow": True, "initial_scale": 8.0, "growth_interval": 5}
    done = train(guard=guard, precision=precision, keep_checkpoints=9)
    folder = done.path / "checkpoints"
    before, after = (state_of(open_artifact(folder / f"step-{step:09d}")) for step in (4, 8))
    assert (before.optimizer_step, before.data_step, len(before.norms)) == (4, 4, 4)
    assert before.scale is not None and (before.scale.factor, before.scale.applied) == (8.0, 4)
    undone = {"optimizer_step", "norms", "losses", "scale", "skipped_in_a_row"}
    assert {name: getattr(after, name) for name in undone} == {name: getattr(before, name) for name in undone}
    assert (after.data_step, after.total_steps) == (8, 8) and len(after.left_out) == 1
    tensors = [
        load_file(folder / f"step-{step:09d}" / f"{part}.safetensors")
        for part in ("model", "optimizer")
        for step in (4, 8)
    ]
    for one, other in (tensors[:2], tensors[2:]):
        assert one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_rollback_at_a_phase_start_reaches_the_phase_before(train: Train, spoil: Spoil) -> None:
    spoil([], range(4))
    expected = train("expected", guard={"patience": 9})
    spoil([], range(1, 4))
    done = train("gone-back", guard=GUARD)
    assert same(done, expected) and done.counts["left_out"] == [{"phase": 1, "from": 0, "to": 4}]


def test_a_phase_is_judged_by_its_own_norms_and_losses(train: Train, spoil: Spoil) -> None:
    """Also where training goes back to the end of the phase before."""
    spoil([], range(1, 4))
    guard = GUARD | {"spike": 1e9, "loss_spike": 1e9, "window": 10}
    done = train("gone-back", guard=guard, checkpoint_every=100, keep_checkpoints=100)
    ends = [state_of(open_artifact(path)) for path in sorted((done.path / "checkpoints").glob("step-*"))]
    assert [(state.phase, len(state.norms), len(state.losses)) for state in ends] == [(0, 10, 10), (1, 2, 2)]
    again = ends[0].next_phase(1)
    assert (again.phase, again.data_step, again.norms, again.losses) == (1, 0, (), ())


def test_rollback_to_another_precision_keeps_loss_scaling(train: Train, spoil: Spoil) -> None:
    with pytest.raises(Interrupted):
        train("run", guard=GUARD, log=Lines(2))
    spoil(range(5, 8))
    done = train("run", guard=GUARD, precision={"kind": "fp16", "allow_slow": True})
    assert done.counts["left_out"] and last_row(done)["loss_scale"] > 1


def test_rollback_repeats_a_hand_over_that_keeps_counting(train: Train, spoil: Spoil) -> None:
    phases = [PHASES[0], PHASES[1] | {"restart_bias_correction": False}]
    spoil([], range(4))
    expected = train("expected", guard={"patience": 9}, phases=phases)
    spoil([], range(1, 4))
    assert same(train("gone-back", guard=GUARD, phases=phases), expected)


@pytest.mark.parametrize("restart", [True, False])
def test_rollback_across_phases_skips_batches_of_both(train: Train, spoil: Spoil, restart: bool) -> None:
    """The end of the first phase was saved while updates were dropped, so it is nothing to go back to."""
    phases = [PHASES[0], PHASES[1] | {"restart_bias_correction": restart}]
    spoil(range(8, 12), range(2))
    expected = train("expected", guard={"patience": 9}, phases=phases)
    spoil(range(10, 12), range(2))
    lines = Lines()
    done = train("gone-back", guard={"patience": 4, "returns": 1}, phases=phases, log=lines)
    assert done.counts["left_out"] == [{"phase": 0, "from": 8, "to": 12}, {"phase": 1, "from": 0, "to": 2}]
    assert same(done, expected)
    said = "returns to step-000000008 and skips the batches 8 to 11 of phase 0 and 0 to 1 of phase 1"
    assert any(said in line for line in lines.said)
    assert last_row(done)["optimizer_step"] == last_row(expected)["optimizer_step"] == 4


def test_every_phase_between_has_a_range_of_its_own(train: Train, spoil: Spoil) -> None:
    phases = [PHASES[0], PHASES[1] | {"steps": 3}, PHASES[1]]
    spoil(range(8, 12), range(3), range(1))
    expected = train("expected", guard={"patience": 9}, phases=phases)
    spoil([11], range(3), range(1))
    done = train("gone-back", guard={"patience": 5, "returns": 1}, phases=phases)
    ranges = [(each["phase"], each["from"], each["to"]) for each in done.counts["left_out"]]
    assert ranges == [(0, 8, 12), (1, 0, 3), (2, 0, 1)] and same(done, expected)


def test_a_return_in_one_phase_takes_none_from_the_next(train: Train, spoil: Spoil) -> None:
    spoil(range(5, 8), range(1, 4))
    done = train(checkpoint_every=2, guard=GUARD)
    ranges = [(each["phase"], each["from"], each["to"]) for each in done.counts["left_out"]]
    assert ranges == [(0, 4, 8), (1, 0, 4)]


def test_a_dropped_spike_is_no_overflow(train: Train, spoil: Spoil) -> None:
    spoil([3, 4])
    done = train(precision={"kind": "fp16", "allow_slow": True, "initial_scale": 8.0}, log_every=1)
    rows = [json.loads(line) for line in (done.path / "metrics.jsonl").read_text().splitlines()]
    assert sum(row["skipped"] for row in rows) == 2 and {row["loss_scale"] for row in rows} == {8.0}


HIGH = {"kind": "fp16", "allow_slow": True, "initial_scale": 2.0**20}
"""With a scale at which the first gradients overflow."""


def test_an_overflow_that_lowers_the_loss_scale_is_no_bad_update(train: Train) -> None:
    done = train(precision=HIGH, guard={"patience": 1, "returns": 1}, log_every=1)
    rows = [json.loads(line) for line in (done.path / "metrics.jsonl").read_text().splitlines()]
    assert 1 < sum(row["skipped"] for row in rows) < 8 and not done.counts["left_out"]


def test_an_overflow_at_the_lowest_loss_scale_is_a_bad_update(train: Train) -> None:
    with pytest.raises(DivergedError, match=r"not finite in 2 steps in a row \(phase 0, step 2\)"):
        train(precision=HIGH | {"min_scale": HIGH["initial_scale"]}, guard={"patience": 2})


@pytest.mark.parametrize("saved", [1, 1000])
def test_a_phase_without_an_update_is_an_error(train: Train, saved: int) -> None:
    """All gradients overflow while the scale falls; a second start says the same."""
    high = {"kind": "fp16", "allow_slow": True, "initial_scale": 2.0**31}
    short = [{**PHASES[0], "steps": 4}, PHASES[1]]
    said = (
        r"phase 0 ends after 4 steps without an update: in fp16 the gradients overflowed in every step, the last time "
        r"at a loss scale of 2\.68435e\+08, so nothing was learnt\. Lower train\.precision\.initial_scale to 1\.34218e"
    )
    for _ in range(2):
        with pytest.raises(DivergedError, match=said):
            train("run", precision=high, phases=short, checkpoint_every=saved)


def test_a_phase_whose_losses_are_never_finite_is_an_error(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although it is shorter than the guard's patience."""
    original = loop.train_step
    lost = {"grad_norm": math.nan, "loss": math.nan, "applied": False}
    monkeypatch.setattr(loop, "train_step", lambda *given: replace(original(*given), **lost))
    said = r"phase 1 ends after 6 steps without an update: the gradient or the loss was never finite, so nothing"
    with pytest.raises(DivergedError, match=said):
        train("run")
    rows = metric_lines(tmp_path / "run")
    assert re.match(said, rows[-1]["stopped"]) and not list((tmp_path / "run").glob("checkpoints/step-*18"))


def test_a_loss_that_is_not_finite_is_bad_whatever_the_scale(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    original = loop.train_step
    lost = {"grad_norm": math.nan, "loss": math.nan, "applied": False}
    monkeypatch.setattr(loop, "train_step", lambda *given: replace(original(*given), **lost))
    with pytest.raises(DivergedError, match=r"in 2 steps in a row \(phase 0, step 2\)"):
        train(precision=HIGH, guard={"patience": 2})


@pytest.mark.parametrize("row", [2, 4, 5, 7])
def test_stopped_and_continued_it_does_the_same(train: Train, spoil: Spoil, row: int) -> None:
    spoil(range(5, 8))
    settings: dict[str, Any] = {"checkpoint_every": 3, "guard": GUARD | {"spike": 50.0, "window": 10}}
    undisturbed = train("undisturbed", **settings)
    with pytest.raises(Interrupted):
        train("disturbed", log=Lines(row), **settings)
    continued = train("disturbed", **settings)
    assert same(continued, undisturbed) and continued.counts["left_out"] == undisturbed.counts["left_out"]


@pytest.mark.parametrize(("bad", "last"), [(range(9, 12), True), (range(8, 11), False)])
def test_rollback_on_the_last_step_reports_the_phase_end(train: Train, spoil: Spoil, bad: range, last: bool) -> None:
    spoil(bad)
    lines = Lines()
    done = train(phases=[PHASES[0]], guard=GUARD, checkpoint_every=8, log=lines)
    (said,) = [line for line in lines.said if "training returns to step-000000008" in line]
    assert ("Phase 0 ends here, with the weights of that checkpoint" in said) == last
    before = load_file(done.path / "checkpoints" / "step-000000008" / "model.safetensors")
    assert all(torch.equal(before[name], tensor) for name, tensor in weights(done).items()) == last


@pytest.mark.parametrize("schedule", ["linear", "constant"])
@pytest.mark.parametrize("bad", [range(0), range(2, 5), range(9, 12)])
def test_a_schedule_cut_short_is_logged(train: Train, spoil: Spoil, bad: range, schedule: str) -> None:
    phases = [PHASES[0] | {"schedule": schedule, "warmup": 0}, PHASES[1]]
    spoil(bad)
    lines = Lines()
    done = train(phases=phases, log=lines)
    rows = [json.loads(line) for line in (done.path / "metrics.jsonl").read_text().splitlines()]
    said = [line for line in lines.said if "ends after" in line]
    if schedule == "constant" or not bad:
        assert said == []
        return
    # After 9 of 12 updates the next one has a quarter of the rate; the last had a third, the twelfth has a twelfth.
    assert said == [
        "train: phase 0 ends after 12 steps with 9 updates, because 3 were dropped or undone. The learning rate "
        "follows the updates, so it stops at 0.0033 instead of 0.00083"
    ]
    assert next(row["optimizer_step"] for row in rows if row["step"] == 12) == 9


def test_updates_undone_by_a_return_cut_the_schedule_too(train: Train, spoil: Spoil) -> None:
    spoil(range(5, 8))
    lines = Lines()
    train(phases=[PHASES[0] | {"warmup": 0}], guard=GUARD, checkpoint_every=2, log=lines)
    assert any("ends after 12 steps with 8 updates, because 4 were dropped or undone" in line for line in lines.said)


def test_it_goes_back_no_more_often_than_it_may(train: Train, spoil: Spoil) -> None:
    spoil([*range(5, 8), *range(9, 12)])
    with pytest.raises(DataError, match=r"3 steps in a row .*, also after going back 1 times: training has diverged"):
        train(checkpoint_every=2, guard=GUARD)


def test_without_a_checkpoint_it_stops(train: Train, spoil: Spoil) -> None:
    spoil(range(3))
    with pytest.raises(DivergedError, match=r"not finite in 3 steps in a row \(phase 0, step 3\)"):
        train(guard=GUARD)


def test_an_average_goes_on_where_the_network_lies(train: Train, spoil: Spoil, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint is read into the processor's memory: on a GPU its tensors are no place for an average."""
    followed, places = list[dict[str, int]](), list[dict[str, int]]()
    after, load = Ema.after, Ema.load

    def noted_after(self: Ema, weights: Mapping[str, torch.Tensor], step: int, applied: bool) -> None:
        followed.append({name: tensor.data_ptr() for name, tensor in weights.items()})
        after(self, weights, step, applied)

    def noted_load(self: Ema, state: Mapping[str, torch.Tensor], weights: Mapping[str, torch.Tensor]) -> None:
        places.append({name: tensor.data_ptr() for name, tensor in weights.items()})
        load(self, state, weights)

    monkeypatch.setattr(Ema, "after", noted_after)
    monkeypatch.setattr(Ema, "load", noted_load)
    spoil(range(5, 8))
    train(guard=GUARD, checkpoint_every=2, averaging="ema")
    assert places == followed[:1], "the tensors of the network that is trained"


def test_a_loss_that_leaps_is_dropped_and_counted(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a training that goes as it would have if the gradient of that step had been dropped."""
    wild, right = rng.key(SEED, "dropout", 0, 20), loop.train_step

    def train_step(trained: Any, batches: Any, totals: Any, update: Any) -> Any:
        # Means over a third as many predictions are three times the loss, and its gradient is clipped.
        totals = {name: total // 3 for name, total in totals.items()} if update.dropout_key == wild else totals
        return right(trained, batches, totals, update)

    monkeypatch.setattr(loop, "train_step", train_step)
    phases = [PHASES[0] | {"steps": 24}]
    done = train(phases=phases, guard={"loss_spike": 2.0, "window": 10}, log_every=1)
    rows = [json.loads(line) for line in (done.path / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if row["skipped"]] == [21]
    (state, *_) = (json.loads(path.read_bytes()) for path in done.path.glob("checkpoints/step-000000024/state.json"))
    assert len(state["losses"]) == 10 and state["norms"] == [] and state["optimizer_step"] == 23
    assert state["losses"][-1] == pytest.approx(rows[-1]["mlm_loss"] + rows[-1]["nsp_loss"], rel=1e-6)


@each_row("factor", [0.5, 1.0])
def test_a_factor_that_would_drop_half_of_all_updates_is_refused(factor: float) -> None:
    said = rf"loss_spike {factor:g} would drop every update .* set it above 1, or to 0 to drop none"
    with pytest.raises(RecipeError, match=said):
        GuardConfig(loss_spike=factor)


def test_a_window_without_a_limit_is_refused() -> None:
    says = "window 20 is for spike and loss_spike, which are both 0: set one of them, or leave it out"
    with pytest.raises(RecipeError, match=says):
        GuardConfig(window=20)
    assert GuardConfig(window=20, spike=2).window == GuardConfig(window=20, loss_spike=2).window == 20


@pytest.mark.parametrize("row", [6, 9])
def test_the_norm_guard_resumes_bit_identical(train: Train, row: int) -> None:
    """About half of the updates are dropped by a limit that follows from the norms before the stop."""
    settings = {"phases": [PHASES[0] | {"steps": 24}], "guard": {"spike": 1.0, "window": 10}}
    undisturbed = train("undisturbed", **settings)
    with pytest.raises(Interrupted):
        train("disturbed", log=Lines(row), **settings)
    assert same(train("disturbed", **settings), undisturbed)
    (state,) = (json.loads(p.read_bytes()) for p in undisturbed.path.glob("checkpoints/step-000000024/state.json"))
    assert state["optimizer_step"] < 22


@pytest.mark.parametrize("row", [4, 7])
def test_the_loss_guard_resumes_bit_identical(train: Train, spoil: Spoil, row: int) -> None:
    spoil(range(5, 8))
    phases = [PHASES[0] | {"steps": 24}]
    settings: dict[str, Any] = {"phases": phases, "guard": GUARD | {"loss_spike": 1.0001, "window": 10, "patience": 3}}
    settings["guard"]["returns"] = 9
    undisturbed = train("undisturbed", **settings)
    with pytest.raises(Interrupted):
        train("disturbed", log=Lines(row), **settings)
    assert same(train("disturbed", **settings), undisturbed)
