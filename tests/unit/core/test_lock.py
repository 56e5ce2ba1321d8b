"""The lock of a run folder: held alone, or together."""

import threading
from pathlib import Path

import pytest

from bertwright.core.errors import ArtifactError, DataError
from bertwright.core.lock import FolderLock
from bertwright.core.log import Silent


def test_alone_means_alone(tmp_path: Path) -> None:
    for shared in (False, True):
        with FolderLock(tmp_path, shared), pytest.raises(ArtifactError, match="another process is working"):
            FolderLock(tmp_path).__enter__()


def test_who_would_share_it_says_so_and_waits(tmp_path: Path) -> None:
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
        assert said.wait(30) and not entered.is_set()
    assert entered.wait(30)
    waiting.join()


def test_the_last_of_several_can_have_it_alone(tmp_path: Path) -> None:
    with FolderLock(tmp_path, shared=True) as first, FolderLock(tmp_path, shared=True) as last:
        first.release()
        assert not first.take_alone()
        last.release()
        assert last.take_alone()
        assert not first.take_alone()
    with FolderLock(tmp_path):
        pass


def test_a_folder_that_cannot_be_locked_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot write"):
        FolderLock(tmp_path / "none").__enter__()
