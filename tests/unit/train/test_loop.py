"""The loop: which key a step drops with, and which rate it has after a step that was dropped."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
import torch

from bertwright.core.artifact import Artifact
from bertwright.core.log import Silent
from bertwright.model.batch import PackedBatch
from bertwright.train import run as loop
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.setup import trainee
from bertwright.train.step import StepResult, StepSettings

Train = Callable[..., Artifact]
PHASE = {"length": 16, "batch": 8, "learning_rate": 1e-2, "steps": 8, "warmup": 0.0}


def test_every_step_of_every_phase_drops_by_a_key_of_its_own(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[int] = []
    real = loop.train_step

    def noting(trained: Any, batches: Any, totals: Any, update: StepSettings) -> StepResult:
        keys.append(update.dropout_key)
        return real(trained, batches, totals, update)

    monkeypatch.setattr(loop, "train_step", noting)
    train("first", phases=[PHASE, PHASE])
    again = list(keys)
    train("second", phases=[PHASE, PHASE])
    assert len(set(again)) == 16 and keys == again * 2


def test_batches_are_prepared_while_the_step_before_is_trained(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the loader's thread, where a GPU's batches are pinned; on a CPU nothing is."""
    real, threads = trainee.host_tensors, list[str]()

    def noting(*arguments: Any) -> PackedBatch:
        threads.append(threading.current_thread().name)
        return real(*arguments)

    monkeypatch.setattr(trainee, "host_tensors", noting)
    monkeypatch.setattr(torch.Tensor, "pin_memory", None)
    train(phases=[PHASE | {"micro_batch": 4}], evaluate_every=8)
    of_the_loader = [name for name in threads if name.startswith("loader")]
    assert len(of_the_loader) == 16, "two micro-batches for each of eight steps; the others were scored"


def test_a_step_and_nothing_else_is_work_for_the_device(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the wait for a batch from a disk, nor scoring: they may take long without a GPU that hangs."""
    real, events = loop.train_step, list[str]()

    @contextmanager
    def on_device(ranks: Ranks, device: torch.device) -> Iterator[None]:
        events.append(device.type)
        yield
        events.append("done")

    def noting(*arguments: Any) -> StepResult:
        events.append("step")
        return real(*arguments)

    monkeypatch.setattr(Ranks, "on_device", on_device)
    monkeypatch.setattr(loop, "train_step", noting)
    train(phases=[PHASE], device="cpu")
    assert events == ["cpu", "step", "done"] * 8


def test_the_schedule_follows_applied_updates(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    """The third step's gradient is made infinite: it is dropped, and the fourth has the rate that the third had."""
    real, taken = loop.train_step, 0

    def poisoned(trained: Any, batches: Any, *arguments: Any, **settings: Any) -> StepResult:
        nonlocal taken
        taken += 1
        if taken == 3:
            batches = [replace(b, weights=torch.full_like(b.weights, torch.inf)) for b in batches]
        return real(trained, batches, *arguments, **settings)

    monkeypatch.setattr(loop, "train_step", poisoned)
    done = train(phases=[PHASE], log_every=1)
    rows = [json.loads(line) for line in done.file("metrics.jsonl").read_text().splitlines()]
    rates = [row["learning_rate"] for row in rows]
    assert rates == pytest.approx([1e-2 * (1 - step / 8) for step in (0, 1, 2, 2, 3, 4, 5, 6)])
    assert [row["optimizer_step"] for row in rows] == [1, 2, 2, 3, 4, 5, 6, 7]
    assert [row["skipped"] for row in rows] == [0, 0, 1, 0, 0, 0, 0, 0]
    assert rows[-1]["step"] == 8
    assert [row["mlm_loss"] is None for row in rows] == [step == 3 for step in range(1, 9)], "of no update: NaN"
    assert rows[2]["nsp_loss"] is None and rows[2]["grad_norm"] is None


def test_a_row_is_a_mean_over_the_steps_that_predict_something(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    """The third and fourth steps have no masked token; in the fourth also no pair has a label. Rows are of two steps
    each, or of one."""
    real, taken = loop.train_step, 0

    def without(trained: Any, batches: Any, totals: Any, update: Any) -> StepResult:
        nonlocal taken
        taken += 1
        if taken in (3, 4):
            batches = [replace(b, weights=torch.zeros_like(b.weights)) for b in batches]
            totals = totals | {"mlm": 0}
        if taken == 4:
            batches = [replace(b, sequence_weights=torch.zeros_like(b.sequence_weights)) for b in batches]
            totals = totals | {"nsp": 0}
        return real(trained, batches, totals, update)

    monkeypatch.setattr(loop, "train_step", without)
    guard = {"spike": 1e9, "loss_spike": 1e9, "window": 10}
    phase = PHASE | {"steps": 12}
    done, rows = dict[int, Any](), dict[int, Any]()
    for every in (1, 2, 3):
        taken = 0
        done[every] = train(f"every-{every}", phases=[phase], log_every=every, evaluate_every=12, guard=guard)
        lines = done[every].file("metrics.jsonl").read_text().splitlines()
        rows[every] = {row["step"]: row for row in map(json.loads, lines)}
    one = rows[1]
    assert (one[3]["mlm_loss"], one[3]["mlm_accuracy"], one[3]["nsp_loss"] > 0) == (None, None, True)
    assert (one[4]["mlm_loss"], one[4]["nsp_loss"], one[4]["nsp_accuracy"]) == (None, None, None)
    assert one[4]["skipped"] == 0 and one[4]["optimizer_step"] == 4
    assert rows[2][4]["mlm_loss"] is None and rows[2][4]["nsp_loss"] == pytest.approx(one[3]["nsp_loss"], rel=1e-6)
    assert rows[3][3]["mlm_loss"] == pytest.approx((one[1]["mlm_loss"] + one[2]["mlm_loss"]) / 2, rel=1e-6)
    assert rows[3][6]["mlm_loss"] == pytest.approx((one[5]["mlm_loss"] + one[6]["mlm_loss"]) / 2, rel=1e-6)
    (path,) = done[1].path.glob("checkpoints/step-000000012/state.json")
    state = json.loads(path.read_bytes())
    # Of 12 updates 10 are kept; the one of step 4 is not among them.
    assert state["norms"] == pytest.approx([one[step]["grad_norm"] for step in (2, 3, *range(5, 13))], rel=1e-6)
    assert 0.0 not in state["losses"] and len(state["losses"]) == 10


def test_rows_have_the_time_and_the_remaining_time(train: Train) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    done = train(phases=[PHASE, PHASE], log_every=1, evaluate_every=8)
    rows = [json.loads(line) for line in done.file("metrics.jsonl").read_text().splitlines()]
    times = [datetime.fromisoformat(row["time"]) for row in rows]
    assert before <= times[0] and times == sorted(times) and times[-1] <= datetime.now(UTC)
    left = [row["remaining_seconds"] for row in rows]
    assert left[-1] == 0 < min(left[:-1])


class Heard(Silent):
    """What training says of its progress."""

    def __init__(self) -> None:
        self.bars: list[tuple[str, float, float]] = []

    def progress(self, stage: str, done: float, total: float, unit: str, **counts: float) -> None:
        self.bars.append((stage, done, total))


def test_progress_is_shown_before_rows_and_while_scoring(train: Train) -> None:
    heard = Heard()
    train(phases=[PHASE], log_every=100, evaluate_every=8, log=heard)
    assert [bar for bar in heard.bars if bar[0] == "phase 0"] == [("phase 0", step, 8) for step in range(9)]
    scoring = [bar[1:] for bar in heard.bars if bar[0] == "scoring"]
    assert scoring[0] == (0, 1) and scoring[-1] == (1, 1)
