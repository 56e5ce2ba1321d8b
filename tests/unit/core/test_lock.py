"""The lock of a run folder: held alone, or together."""

import errno
import fcntl
import os
import threading
from pathlib import Path

import pytest
from tests.processes import PATIENCE
from tests.rows import each_row

from bertwright.core.errors import ArtifactError, DataError
from bertwright.core.log import Silent
from bertwright.core.work_split import FolderLock


def test_alone_means_alone(tmp_path: Path) -> None:
    for shared in (False, True):
        with FolderLock(tmp_path, shared), pytest.raises(ArtifactError, match="another process is working"):
            FolderLock(tmp_path).__enter__()


def test_a_shared_lock_logs_that_it_waits(tmp_path: Path) -> None:
    said, entered = threading.Event(), threading.Event()

    class Heard(Silent):
        def say(self, message: str) -> None:
            assert message == f"waiting for another process that works in {tmp_path}"
            said.set()

    def share() -> None:
        with FolderLock(tmp_path, shared=True, log=Heard()):
            entered.set()

    waiting = threading.Thread(target=share, daemon=True)
    with FolderLock(tmp_path):
        waiting.start()
        assert said.wait(PATIENCE) and not entered.is_set()
    assert entered.wait(PATIENCE)
    waiting.join()


def test_who_shared_it_can_have_it_alone(tmp_path: Path) -> None:
    with FolderLock(tmp_path, shared=True) as first, FolderLock(tmp_path, shared=True) as last:
        first.release()
        last.release()
        last.take_alone()
        with pytest.raises(ArtifactError, match="another process is working"):
            FolderLock(tmp_path).__enter__()
    with FolderLock(tmp_path):
        pass


def test_a_folder_that_cannot_be_locked_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot write"):
        FolderLock(tmp_path / "none").__enter__()


@each_row("shared", [False, True])
def test_a_file_system_without_locks_is_an_error(shared: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(DataError, match=r"cannot lock .*/\.lock: No locks available\. .*--out DIR"):
        FolderLock(tmp_path, shared).__enter__()
