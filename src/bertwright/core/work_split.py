"""One stage on several machines without a scheduler of our own: Slurm arrays, Kubernetes jobs, several shells.

The ranks share the run folder. Rank R of W does tasks R, R + W, R + 2W, ... of the stage's first and longest task list.
A task's output is one named file, complete or absent, so the ranks do not communicate: the rank that finds all outputs
completes the stage. Ranks may run concurrently or one after another, and a killed rank can be started again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bertwright.core.lock import FolderLock
from bertwright.core.task_records import is_done


class StageIncomplete(Exception):
    """This rank has done its share, and another process completes the stage; the message says so. Not a failure."""


@dataclass(frozen=True)
class WorkSplit:
    """How the tasks of a stage are split over ranks, and which rank this process is."""

    rank: int = 0
    world: int = 1
    lock: FolderLock | None = None
    """The lock of the run folder: shared while ranks work, exclusive for the rank that completes the stage."""

    def owns(self, number: int) -> bool:
        """Whether the task with this number belongs to this rank."""
        return number % self.world == self.rank

    def complete(self, stage: str, draft: Path, outputs: Sequence[Path]) -> None:
        """Return in the process that must complete the stage, which then holds the run folder exclusively.

        Raises `StageIncomplete` in any other process: some of `outputs` (the notes of tasks) are missing or list
        damaged files, or another rank has published the stage. A rank that finds all outputs waits for the folder,
        because the process that holds it may be stopped, or may be there for another reason.
        """
        if self.world == 1:
            return
        assert self.lock is not None, "several ranks need a lock"
        # Release before checking: if two ranks end together, one of them then gets the lock and completes the stage.
        self.lock.release()
        # Cheap check first: hashing the outputs of all ranks is worthwhile only if none is missing.
        missing = sum(not path.is_file() for path in outputs) or sum(not is_done(path) for path in outputs)
        done = f"{stage}: rank {self.rank} of {self.world} is done"
        if missing and _is_there(draft):
            raise StageIncomplete(
                f"{done}; {missing:,} of {len(outputs):,} parts, made by other ranks, are missing or damaged. The "
                "last rank to finish completes the stage; restart any rank that was stopped."
            )
        if _is_there(draft):
            self.lock.take_alone()
        if not _is_there(draft):
            raise StageIncomplete(f"{done}; another rank has completed the stage.")


def _is_there(folder: Path) -> bool:
    # Not `is_dir`: an NFS client may answer from memory about a folder that another machine has renamed, but asks the
    # server about the folder above before it lists it.
    return folder.name in os.listdir(folder.parent)


SINGLE = WorkSplit()
"""The split of a process that works alone: every task belongs to it."""
