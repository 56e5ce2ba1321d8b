"""How several processes share a run folder: its lock, and the split of a stage's tasks on several machines.

There is no scheduler of our own, but Slurm arrays, Kubernetes jobs, or several shells. The ranks share the run folder.
Rank R of W does tasks R, R + W, R + 2W, ... of the stage's first and longest task list. A task's output is one named
file, complete or absent, so the ranks do not communicate: the rank that finds all outputs completes the stage. Ranks
may run concurrently or one after another, and a killed rank can be started again.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from bertwright.core.errors import ArtifactError, DataError
from bertwright.core.files import cannot_write
from bertwright.core.log import SILENT, Log
from bertwright.core.signals import POLL_SECONDS, pause
from bertwright.core.task_records import is_done

LOCK = ".lock"
"""Name of the lock file; every run folder contains it from the start."""


class FolderLock:
    """Lock `folder` inside a `with` block; the operating system releases the lock however this process ends.

    An exclusive lock belongs to one process: `ArtifactError` if the folder is busy. With `shared`, several processes
    (the ranks of a stage) hold it together, and wait while it is held exclusively. On a shared file system, locks must
    work across machines (NFS 4, CephFS, Lustre mounted with `flock`); `DataError` on a file system without locks.
    """

    def __init__(self, folder: Path, shared: bool = False, log: Log = SILENT, busy: str = "") -> None:
        """`busy` replaces the error message for a run folder that is already locked."""
        self._folder, self._shared, self._log = folder, shared, log
        self._busy = busy or f"another process is working in {folder}. Wait for it to end, or choose another --out."

    def __enter__(self) -> Self:
        path = self._folder / LOCK
        try:
            # The file stays after release: removing it would let two processes lock two files of the same name.
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise cannot_write(path, error) from error
        try:
            if self._shared:
                self._await(fcntl.LOCK_SH)
            elif not self._take(fcntl.LOCK_EX | fcntl.LOCK_NB):
                raise ArtifactError(self._busy)
        except BaseException:
            os.close(self._descriptor)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    @property
    def descriptor(self) -> int:
        """The descriptor of the locked file: a process that inherits it also holds the lock, until it exits."""
        return self._descriptor

    def release(self) -> None:
        """Release the lock before the block ends."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def take_alone(self) -> None:
        """After `release`: wait until no other process holds the lock, then lock exclusively."""
        self._await(fcntl.LOCK_EX)

    def _await(self, kind: int) -> None:
        if not self._take(kind | fcntl.LOCK_NB):
            self._log.say(f"waiting for another process that works in {self._folder}")
            while not self._take(kind | fcntl.LOCK_NB):
                pause(POLL_SECONDS)

    def _take(self, kind: int) -> bool:
        """Take the lock without waiting; returns whether no other process holds it."""
        try:
            # A lock of the kernel rather than a file that says "locked": kill -9 leaves no stale lock behind.
            fcntl.flock(self._descriptor, kind)
        except BlockingIOError:
            return False
        except OSError as error:
            raise DataError(
                f"cannot lock {self._folder / LOCK}: {error.strerror}. Choose a folder on a file system that supports "
                "locks (--out DIR): a local one, NFS 4, CephFS, or Lustre mounted with flock."
            ) from error
        return True


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
