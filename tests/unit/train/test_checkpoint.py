"""Which checkpoints stay."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.rows import each_row

from bertwright.core.config import Identity
from bertwright.core.log import SILENT
from bertwright.train.checkpoints.checkpoint import load, newest_valid, prune, remove_partial, save
from bertwright.train.checkpoints.tensor_files import Snapshot
from bertwright.train.state import PhaseEnd, State

IDENTITY = Identity("checkpoint", 1, {}, {})


def checkpoints(folder: Path, states: list[State]) -> list[Path]:
    weights = {"w": torch.arange(4.0)}
    return [save(folder, IDENTITY, state, Snapshot(weights, weights)) for state in states]


def state(step: int, loss: float | None = None, phase: int = 0, phase_end: bool = False) -> State:
    heldout = {} if loss is None else {"mlm_loss": loss}
    ended = tuple(PhaseEnd(index, step, False, None) for index in range(phase))
    return State(phase=phase, data_step=step, total_steps=step, ended=ended, heldout=heldout, phase_end=phase_end)


def kept(folder: Path) -> list[int]:
    return sorted(int(path.name.removeprefix("step-")) for path in folder.glob("step-*"))


def noted(monkeypatch: pytest.MonkeyPatch, *names: str) -> list[str]:
    """The names of these functions of `os`, in the order of their calls from now on."""
    done: list[str] = []

    def noting(name: str) -> Callable[..., object]:
        real = getattr(os, name)

        def called(*arguments: Any, **settings: Any) -> object:
            done.append(name)
            return real(*arguments, **settings)

        return called

    for name in names:
        monkeypatch.setattr(os, name, noting(name))
    return done


def test_the_best_one_stays_however_old_it_is(tmp_path: Path) -> None:
    losses = {1: 3.0, 2: 1.5, 3: 2.0, 4: 1.9, 5: 1.8}
    for step, loss in losses.items():
        *_, newest = checkpoints(tmp_path, [state(step, loss)])
        prune(tmp_path, 1, newest)
    assert kept(tmp_path) == [2, 5]


def test_the_best_one_is_of_the_latest_phase(tmp_path: Path) -> None:
    """Losses of different lengths are not comparable; the end of the first phase stays for its own sake."""
    made = checkpoints(
        tmp_path,
        [
            state(1, 1.0),
            state(2, 1.2, phase_end=True),
            state(3, 2.0, phase=1),
            state(4, 2.5, phase=1),
            state(5, 2.4, phase=1),
        ],
    )
    prune(tmp_path, 1, made[-1])
    assert kept(tmp_path) == [2, 3, 5]


def test_a_score_that_is_no_number_is_no_best(tmp_path: Path) -> None:
    made = checkpoints(tmp_path, [state(1, float("nan")), state(2, 2.0), state(3, 3.0)])
    prune(tmp_path, 1, made[-1])
    assert kept(tmp_path) == [2, 3]


def test_a_replaced_checkpoint_returns_if_its_successor_failed(tmp_path: Path) -> None:
    (only,) = checkpoints(tmp_path, [state(1)])
    only.rename(tmp_path / f".{only.name}.123.replaced")
    (tmp_path / f".{only.name}.draft").mkdir()
    remove_partial(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [only.name]
    assert newest_valid(tmp_path, SILENT) is not None


def test_a_checkpoint_saved_again_leaves_no_other_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one is removed only when the new one is on disk under its name."""
    checkpoints(tmp_path, [state(1)])
    done = noted(monkeypatch, "rename", "fsync", "unlink")
    checkpoints(tmp_path, [state(1, phase_end=True)])
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000001"]
    found = newest_valid(tmp_path, SILENT)
    assert found is not None and load(found)[0].phase_end
    last = max(number for number, name in enumerate(done) if name == "rename")
    assert done[last + 1 :] == ["fsync", *["unlink"] * 4]


def test_a_file_in_use_is_removed_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NFS keeps an open file under another name, so its folder is not empty: a mirror may be reading it, or a user."""
    real, first = os.rmdir, "step-000000001"

    def rmdir(path: Any, **settings: Any) -> None:
        if first in str(path):
            raise OSError(errno.ENOTEMPTY, "Directory not empty")
        real(path, **settings)

    with monkeypatch.context() as held:
        held.setattr(os, "rmdir", rmdir)
        made = checkpoints(tmp_path, [state(1), state(1, phase_end=True), state(2), state(3)])
        prune(tmp_path, 1, made[-1])
        assert kept(tmp_path) == [1, 3] and len(list(tmp_path.glob(f".{first}.*.replaced"))) == 1
        made = checkpoints(tmp_path, [state(4)])
        (tmp_path / first).rename(tmp_path / f".{first}.removed")
        prune(tmp_path, 1, made[-1])
        assert kept(tmp_path) == [4] and len(list(tmp_path.iterdir())) == 3
        remove_partial(tmp_path)
        assert kept(tmp_path) == [4], "what is left of a folder is no checkpoint"
    prune(tmp_path, 1, made[-1])
    remove_partial(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000004"]


def test_unscored_checkpoints_are_no_best(tmp_path: Path) -> None:
    made = checkpoints(tmp_path, [state(1), state(2), state(3)])
    prune(tmp_path, 2, made[-1])
    assert kept(tmp_path) == [2, 3]


@each_row("mask", [0o022, 0o002, 0o077])
def test_all_files_have_the_mode_that_the_umask_gives(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        (saved,) = checkpoints(tmp_path, [state(1)])
    finally:
        os.umask(before)
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in saved.iterdir()} == dict.fromkeys(
        ("manifest.json", "model.safetensors", "optimizer.safetensors", "state.json"), 0o666 & ~mask
    )


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    written = state(7, 2.5, phase=1, phase_end=True)
    checkpoints(tmp_path, [written])
    found = newest_valid(tmp_path, SILENT)
    assert found is not None
    read, weights, moments = load(found)
    assert read == written
    assert torch.equal(weights["w"], torch.arange(4.0)) and torch.equal(moments["w"], torch.arange(4.0))


def test_a_power_cut_while_pruning_restores_no_partial_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new name of a doomed folder is on disk before the first file of it is removed."""
    made = checkpoints(tmp_path, [state(1), state(2), state(3)])
    done = noted(monkeypatch, "rename", "fsync", "unlink", "rmdir")
    prune(tmp_path, 1, made[-1])
    assert kept(tmp_path) == [3]
    assert done[:3] == ["rename", "rename", "fsync"] and {*done[3:]} == {"unlink", "rmdir"}
