"""Which tasks are a rank's, and which rank completes the stage."""

from pathlib import Path

import pytest

from bertwright.core.lock import FolderLock
from bertwright.core.ranks import WHOLE, OthersToFinish, Share


def test_every_task_is_one_ranks() -> None:
    shares = [Share(rank, 3) for rank in range(3)]
    assert [[n for n in range(8) if share.owns(n)] for share in shares] == [[0, 3, 6], [1, 4, 7], [2, 5]]
    assert all(WHOLE.owns(n) for n in range(8))


def test_who_works_alone_completes(tmp_path: Path) -> None:
    WHOLE.complete("corpus", tmp_path, [tmp_path / "not looked at"])


def test_the_rank_that_finds_all_outputs_completes_and_the_others_say_what_is_missing(tmp_path: Path) -> None:
    outputs = [tmp_path / name for name in "abc"]
    with FolderLock(tmp_path, shared=True) as early, FolderLock(tmp_path, shared=True) as late:
        outputs[0].touch()
        with pytest.raises(OthersToFinish, match=r"corpus: rank 0 of 2 is done; 2 of 3 parts, of other ranks, are mis"):
            Share(0, 2, early).complete("corpus", tmp_path, outputs)
        for path in outputs:
            path.touch()
        Share(1, 2, late).complete("corpus", tmp_path, outputs)
        with pytest.raises(OthersToFinish, match="another rank completes the stage"):
            Share(0, 2, early).complete("corpus", tmp_path, outputs)


def test_while_a_rank_is_at_work_another_leaves_the_rest_to_it(tmp_path: Path) -> None:
    with FolderLock(tmp_path, shared=True) as done, FolderLock(tmp_path, shared=True) as working:
        with pytest.raises(OthersToFinish, match="another rank completes"):
            Share(0, 2, done).complete("corpus", tmp_path, [])
        Share(1, 2, working).complete("corpus", tmp_path, [])


def test_a_draft_that_was_published_meanwhile_is_not_made_again(tmp_path: Path) -> None:
    with (
        FolderLock(tmp_path, shared=True) as lock,
        pytest.raises(OthersToFinish, match="another rank has completed the stage"),
    ):
        Share(0, 2, lock).complete("corpus", tmp_path / "moved", [tmp_path / "moved" / "a"])
