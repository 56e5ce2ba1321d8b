"""One stage on several machines without a scheduler of ours: Slurm arrays, Kubernetes jobs, several shells.

The ranks share the run folder. Rank R of W does the tasks R, R + W, R + 2W, ... of the stage's first and longest list.
A task's output is one named file, whole or absent, so the ranks need not know of each other: whoever finds the outputs
of all of them completes the stage. They may run at the same time or one after another, and a killed one is started
again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bertwright.core.done import is_done
from bertwright.core.lock import FolderLock


class StageIncomplete(Exception):
    """This rank has done its share, and other processes complete the stage; the message says so. Not a failure."""


@dataclass(frozen=True)
class WorkSplit:
    """How the tasks of a stage are split over ranks, and which of them are this process's."""

    rank: int = 0
    world: int = 1
    lock: FolderLock | None = None
    """The lock of the run folder: several ranks hold it together, the one that completes the stage alone."""

    def owns(self, number: int) -> bool:
        """Whether the task of this number is for this rank."""
        return number % self.world == self.rank

    def complete(self, stage: str, draft: Path, outputs: Sequence[Path]) -> None:
        """Return in the process that is to complete the stage, which is then alone in the run folder.

        Raises `StageIncomplete` where it is another: some of `outputs` (the notes of tasks) are missing, or what they
        tell of is damaged, or somebody else has published the stage. Whoever finds them all waits until the folder is
        free, as the one that is in it may be stopped, or may be there for another reason.
        """
        if self.world == 1:
            return
        assert self.lock is not None, "several ranks need a lock"
        # Let go before looking: of two ranks that end together one then gets the lock alone, and completes the stage.
        self.lock.release()
        # Cheap first: hashing the outputs of all ranks is worth it only when none is missing.
        missing = sum(not path.is_file() for path in outputs) or sum(not is_done(path) for path in outputs)
        done = f"{stage}: rank {self.rank} of {self.world} is done"
        if missing and draft.is_dir():
            raise StageIncomplete(
                f"{done}; {missing:,} of {len(outputs):,} parts, of other ranks, are missing or damaged. The last rank "
                "to finish completes the stage; start again any that was stopped."
            )
        if draft.is_dir():
            self.lock.take_alone()
        if not draft.is_dir():
            raise StageIncomplete(f"{done}; another rank has completed the stage.")


SINGLE = WorkSplit()
"""The split of a process that works alone: all is its own."""
