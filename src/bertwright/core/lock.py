"""The lock file of a run folder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from bertwright.core.errors import ArtifactError, DataError
from bertwright.core.files import cannot_write
from bertwright.core.log import SILENT, Log
from bertwright.core.signals import LOOK, pause

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
                pause(LOOK)

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
