"""The lock of a run folder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from bertwright.core.errors import ArtifactError, DataError
from bertwright.core.files import cannot_write
from bertwright.core.log import SILENT, Log

LOCK = ".lock"
"""The file in a run folder that is locked: every run folder has it from its first moment on."""


class FolderLock:
    """Hold `folder` between entering and leaving; the system lets go of it however this process ends.

    One process holds it alone: `ArtifactError` if it is not free. Or several hold it shared (the ranks of a stage),
    and wait while it is held alone. On a shared file system its locks must reach across machines (NFS 4, CephFS,
    Lustre mounted with `flock`); one that has none is a `DataError`.
    """

    def __init__(self, folder: Path, shared: bool = False, log: Log = SILENT, busy: str = "") -> None:
        """`busy` is what the error says when the folder is not free, instead of the words for a run folder."""
        self._folder, self._shared, self._log = folder, shared, log
        self._busy = busy or f"another process is working in {folder}. Wait for it to end, or choose another --out."

    def __enter__(self) -> Self:
        path = self._folder / LOCK
        try:
            # The file stays when the lock is gone: removing it would let two processes lock two files of one name.
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
        """The locked file: a process that it is passed on to holds the folder as well, until its end."""
        return self._descriptor

    def release(self) -> None:
        """Let go of it before leaving."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def take_alone(self) -> None:
        """Hold it alone, having released it, once no other process holds it."""
        self._await(fcntl.LOCK_EX)

    def _await(self, kind: int) -> None:
        if not self._take(kind | fcntl.LOCK_NB):
            self._log.say(f"waiting for another process that works in {self._folder}")
            self._take(kind)

    def _take(self, kind: int) -> bool:
        """Whether the lock is held now; always, unless `kind` says not to wait."""
        try:
            # Of the system and not a file that says "locked": kill -9 leaves none of these behind.
            fcntl.flock(self._descriptor, kind)
        except BlockingIOError:
            return False
        except OSError as error:
            raise DataError(
                f"cannot lock {self._folder / LOCK}: {error.strerror}. Choose a folder on a file system that has "
                "locks (--out DIR): a local one, NFS 4, CephFS, or Lustre mounted with flock."
            ) from error
        return True
