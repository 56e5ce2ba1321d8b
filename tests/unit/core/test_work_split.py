"""Which tasks are a rank's, and which rank completes the stage."""

import threading
from pathlib import Path

import pytest
from tests.processes import PATIENCE
from tests.rows import each_row

from bertwright.core.log import Silent
from bertwright.core.task_records import mark_done
from bertwright.core.work_split import SINGLE, FolderLock, StageIncomplete, WorkSplit


def test_every_task_is_one_ranks() -> None:
    shares = [WorkSplit(rank, 3) for rank in range(3)]
    assert [[n for n in range(8) if share.owns(n)] for share in shares] == [[0, 3, 6], [1, 4, 7], [2, 5]]
    assert all(SINGLE.owns(n) for n in range(8))


def test_who_works_alone_completes(tmp_path: Path) -> None:
    SINGLE.complete("corpus", tmp_path, [tmp_path / "not looked at"])


def test_the_rank_that_finds_all_outputs_completes_the_stage(tmp_path: Path) -> None:
    outputs = [tmp_path / name for name in "abc"]
    with FolderLock(tmp_path, shared=True) as early, FolderLock(tmp_path, shared=True) as late:
        mark_done(outputs[0])
        with pytest.raises(
            StageIncomplete, match=r"corpus: rank 0 of 2 is done; 2 of 3 parts, made by other ranks, are mis"
        ):
            WorkSplit(0, 2, early).complete("corpus", tmp_path, outputs)
        for path in outputs:
            mark_done(path)
        outputs[2].write_text("damaged")
        with pytest.raises(
            StageIncomplete, match=r"rank 1 of 2 is done; 1 of 3 parts, made by other ranks, are missing or d"
        ):
            WorkSplit(1, 2, late).complete("corpus", tmp_path, outputs)
        mark_done(outputs[2])
        WorkSplit(1, 2, late).complete("corpus", tmp_path, outputs)


@each_row("publishes", [False, True])
def test_completing_a_stage_waits_for_the_folder_lock(publishes: bool, tmp_path: Path) -> None:
    waits, completed, left = threading.Event(), threading.Event(), threading.Event()
    draft = tmp_path / "draft"
    draft.mkdir()

    class Heard(Silent):
        def say(self, message: str) -> None:
            waits.set()

    def last() -> None:
        with FolderLock(tmp_path, shared=True, log=Heard()) as lock:
            try:
                WorkSplit(1, 2, lock).complete("corpus", draft, [])
                completed.set()
            except StageIncomplete as rest:
                assert str(rest) == "corpus: rank 1 of 2 is done; another rank has completed the stage."
                left.set()

    waiting = threading.Thread(target=last, daemon=True)
    with FolderLock(tmp_path, shared=True):
        waiting.start()
        assert waits.wait(PATIENCE) and not completed.is_set() and not left.is_set()
        if publishes:
            draft.rmdir()
    assert (left if publishes else completed).wait(PATIENCE)
    waiting.join()


def test_a_draft_published_on_another_machine_is_not_recreated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An NFS client remembers for a while that it was there."""
    monkeypatch.setattr(Path, "is_dir", lambda self: True)
    with (
        FolderLock(tmp_path, shared=True) as lock,
        pytest.raises(StageIncomplete, match="another rank has completed the stage"),
    ):
        WorkSplit(0, 2, lock).complete("corpus", tmp_path / "renamed", [])


def test_a_draft_that_was_published_meanwhile_is_not_made_again(tmp_path: Path) -> None:
    with (
        FolderLock(tmp_path, shared=True) as lock,
        pytest.raises(StageIncomplete, match="another rank has completed the stage"),
    ):
        WorkSplit(0, 2, lock).complete("corpus", tmp_path / "moved", [tmp_path / "moved" / "a"])
