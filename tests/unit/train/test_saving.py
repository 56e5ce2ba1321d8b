"""Checkpoints written beside training: the same bytes, of their own step, one at a time, and no promise is broken."""

import errno
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from tests.processes import PATIENCE
from tests.unit.train.conftest import PHASES

from bertwright.core import rng
from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.errors import DataError, Interrupted
from bertwright.core.files import sha256
from bertwright.optim.config import AdamWConfig
from bertwright.train import run as loop
from bertwright.train.checkpoints import tensor_files
from bertwright.train.checkpoints.store import Writer, copy_to_host
from bertwright.train.checkpoints.tensor_files import Snapshot
from bertwright.train.config import GuardConfig, TrainConfig
from bertwright.train.memory.rank_memory import computing_of

pytestmark = pytest.mark.heavy

Train = Callable[..., Artifact]
AVERAGES = ["none", {"kind": "ema", "decay": 0.9}, {"kind": "last", "count": 2, "every": 2}]


class Notes:
    """A log that does something at each row."""

    def __init__(self, at_row: Callable[[int], None] = lambda _: None) -> None:
        self.lines, self.rows = list[str](), 0
        self._at_row = at_row

    def say(self, message: str) -> None:
        self.lines.append(message)

    def progress(self, stage: str, done: float, total: float, unit: str) -> None: ...

    def record(self, row: dict[str, Any]) -> None:
        self.rows += 1
        self._at_row(self.rows)


def tensors_of(folder: Path) -> dict[str, str]:
    """The hashes of all tensors in the checkpoints and the model of a training."""
    return {path.relative_to(folder).as_posix(): sha256(path) for path in folder.rglob("*.safetensors")}


@pytest.fixture
def on_save(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Path], None]], None]:
    """Have something done before each file of tensors in a checkpoint is written."""

    def patch(before: Callable[[Path], None]) -> None:
        def saving(tensors: dict[str, torch.Tensor], path: Path) -> None:
            before(path)
            save_file(tensors, path)

        monkeypatch.setattr(tensor_files, "save_file", saving)

    return patch


OnSave = Callable[[Callable[[Path], None]], None]


@pytest.mark.parametrize("averaging", AVERAGES, ids=["none", "ema", "last"])
def test_the_same_bytes_as_when_training_waits(train: Train, averaging: Any, optim: Any) -> None:
    waiting = train("waiting", optim=optim, averaging=averaging, save_async=False)
    beside = train("beside", optim=optim, averaging=averaging, save_async=True)
    assert tensors_of(beside.path) == tensors_of(waiting.path) and len(tensors_of(beside.path)) >= 7
    assert beside.fingerprint == waiting.fingerprint, "how it is saved is no part of what is made"


def test_a_checkpoint_written_beside_training_is_of_its_step(train: Train, on_save: OnSave) -> None:
    expected = tensors_of(train("waiting", save_async=False, keep_checkpoints=9).path)
    rows, in_time = threading.Semaphore(0), list[bool]()

    def wait_for_two_rows(path: Path) -> None:
        if ".step-000000008.draft" in path.parts and path.name == "model.safetensors":
            in_time.extend(rows.acquire(timeout=PATIENCE) for _ in range(2))

    def at_row(number: int) -> None:
        # Of steps 2, 4, 6, 8, 10, 12: those after the one that step 8 is saved with.
        if number > 4:
            rows.release()

    on_save(wait_for_two_rows)
    beside = train("beside", save_async=True, keep_checkpoints=9, log=Notes(at_row))
    assert in_time == [True, True], "steps 10 and 12 were trained while step 8 was being written"
    assert tensors_of(beside.path) == expected


def test_one_write_at_a_time_and_the_next_one_waits(train: Train, on_save: OnSave) -> None:
    under_way, most = set[str](), list[int]()

    def slow(path: Path) -> None:
        if path.name == "model.safetensors":
            under_way.add(path.parent.parent.name)
        most.append(len(under_way))
        time.sleep(0.05)
        if path.name == "optimizer.safetensors":
            under_way.discard(path.parent.parent.name)

    on_save(slow)
    train(save_async=True, checkpoint_every=1)
    assert max(most) == 1 and len(most) == 2 * 18


def test_the_first_checkpoint_is_waited_for(train: Train, on_save: OnSave, tmp_path: Path) -> None:
    """Rows after one that was saved say that there is a checkpoint; without it a run would not go on."""
    on_save(lambda _: time.sleep(0.2))

    def crash(number: int) -> None:
        if number == 3:  # the row after the one of the first checkpoint
            assert (tmp_path / "run" / "checkpoints" / "step-000000004" / "manifest.json").is_file()
            raise RuntimeError("test")

    with pytest.raises(RuntimeError):
        train("run", save_async=True, log=Notes(crash))
    train("run", save_async=True)


@pytest.mark.parametrize("when", ["at the next step", "at the next save"])
def test_what_the_disk_says_ends_training_with_the_same_sentence(
    train: Train, on_save: OnSave, tmp_path: Path, when: str
) -> None:
    expected = tensors_of(train("undisturbed", save_async=False).path)

    def full(path: Path) -> None:
        if ".step-000000008.draft" in path.parts:
            time.sleep(0.0 if when == "at the next step" else 0.5)
            raise OSError(errno.ENOSPC, "No space left on device")

    on_save(full)
    with pytest.raises(DataError, match=r"^cannot write .*step-000000008: No space left on device\. Choose a folder"):
        train("run", save_async=True)
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["step-000000004"]
    on_save(lambda _: None)
    assert (
        tensors_of(train("run", save_async=True).path).items()
        >= {name: value for name, value in expected.items() if name.startswith("model/")}.items()
    )


def test_an_error_in_training_lets_the_write_end(train: Train, on_save: OnSave, tmp_path: Path) -> None:
    on_save(lambda _: time.sleep(0.2))

    def crash(number: int) -> None:
        if number == 5:  # after the checkpoint of step 8 has begun
            raise RuntimeError("test")

    with pytest.raises(RuntimeError, match="test"):
        train("run", save_async=True, log=Notes(crash))
    folder = tmp_path / "run" / "checkpoints"
    assert sorted(path.name for path in folder.iterdir()) == ["step-000000004", "step-000000008"]
    open_artifact(folder / "step-000000008", "checkpoint").verify()


def test_a_stop_waits_for_its_checkpoint(train: Train, on_save: OnSave, tmp_path: Path) -> None:
    on_save(lambda _: time.sleep(0.2))

    def stop(number: int) -> None:
        if number == 5:  # the row of step 10, which no checkpoint is due at
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted, match="everything is saved"):
        train("run", save_async=True, log=Notes(stop))
    newest = sorted((tmp_path / "run" / "checkpoints").iterdir())[-1]
    assert newest.name in ("step-000000010", "step-000000011", "step-000000012")
    open_artifact(newest, "checkpoint").verify()


def test_going_back_waits_for_the_checkpoint_to_go_back_to(
    train: Train, on_save: OnSave, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, original = {rng.key(42, "dropout", 0, step) for step in (8, 9)}, loop.train_step

    def spoiled(trained: Any, batches: Any, totals: Any, update: Any) -> Any:
        limit = {"norm_limit": 0.0} if update.dropout_key in bad else {}
        return original(trained, batches, totals, replace(update, **limit))

    monkeypatch.setattr(loop, "train_step", spoiled)
    guard = GuardConfig(patience=2, returns=1)
    expected = train("waiting", save_async=False, guard=guard)
    on_save(lambda _: time.sleep(0.2))
    notes = Notes()
    beside = train("beside", save_async=True, guard=guard, log=notes)
    assert any("returns to step-000000008" in line for line in notes.lines)
    assert tensors_of(beside.path) == tensors_of(expected.path)


def test_copies_are_copies_and_their_memory_is_used_again() -> None:
    weights, moments = {"w": torch.ones(3)}, {"step": torch.tensor(4), "m.w": torch.zeros(2, 2)}
    first = copy_to_host(Snapshot(weights, moments, None), None)
    weights["w"].add_(1)
    assert first.weights["w"].tolist() == [1.0] * 3 and first.moments["step"].item() == 4
    again = copy_to_host(Snapshot({"w": weights["w"]}, {"m.w": torch.ones(4)}, {"w": torch.full((3,), 7.0)}), first)
    assert again.weights["w"] is first.weights["w"] and again.weights["w"].tolist() == [2.0] * 3
    assert again.moments.keys() == {"m.w"} and again.moments["m.w"].shape == (4,), "another shape is new memory"
    assert again.average is not None and again.average["w"].tolist() == [7.0] * 3


def test_a_second_interrupt_does_not_wait_for_the_write() -> None:
    release = threading.Event()
    with pytest.raises(KeyboardInterrupt), Writer(beside=True) as writer:
        writer.write(lambda _: release.wait(PATIENCE) and None, Snapshot({}, {}, None))
        raise KeyboardInterrupt
    assert not release.is_set()
    release.set()


def test_asynchronous_saving_and_its_memory() -> None:
    def config(**values: Any) -> TrainConfig:
        return TrainConfig.model_validate({"phases": PHASES} | values)

    assert [config().saves_beside(gpu) for gpu in (False, True)] == [False, True]
    assert [config(save_async=wanted).saves_beside(gpu=not wanted) for wanted in (False, True)] == [False, True]
    assert [computing_of(config(), AdamWConfig(), 1, gpu).saved for gpu in (False, True)] == [0, 0]
    assert computing_of(config(save_async=True), AdamWConfig(), 1, gpu=False).saved == 12
    assert computing_of(config(save_async=True, averaging="ema"), AdamWConfig(), 1, gpu=False).saved == 16
