"""Errors for files of examples, and import of the optional packages that some formats need."""

from __future__ import annotations

import errno
import importlib
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from bertwright.core.errors import DataError, MissingExtraError, memory_error, system_error

_FROM_LIBRARIES = (OSError, EOFError, ValueError, KeyError, TypeError, RuntimeError, MemoryError, zlib.error)
"""What zlib, h5py and pyarrow raise for damaged files (Arrow's exceptions are subclasses of these)."""
_NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR}
"""Error numbers for a missing file; any other error number has nothing to do with the file's content."""
# HDF5 reports the system's error number only in the text of its message.
_ERRNO = re.compile(r"\berrno = (\d+)")


class ShardError(DataError):
    """A file of examples is damaged, hostile or not what it claims to be; the other files are usable without it."""

    def __init__(self, file: Path, fault: str) -> None:
        self.file, self.fault = file, fault
        super().__init__(f"{file}: {fault}. Make or fetch this file again, or skip it with the option quarantine.")

    def __reduce__(self) -> tuple[type[ShardError], tuple[Path, str]]:
        # For worker processes: unpickling calls the class with `args`, which hold only the message.
        return type(self), (self.file, self.fault)


class NotExamplesError(ShardError):
    """A table is not damaged, but has none of the columns of examples: it may be text that belongs to no set."""


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Convert exceptions that libraries raise while reading `file` into a `ShardError` that names it.

    If the disk fails or memory runs out, raises another `DataError` instead: the file may be intact and must not be
    quarantined for it.
    """
    try:
        yield
    # Not every exception: a bug in this project must not be mistaken for a damaged file.
    except _FROM_LIBRARIES as error:
        if found := _machine_error(file, error):
            raise found from error
        raise ShardError(file, f"cannot be read: {str(error).strip() or type(error).__name__}") from error


def _machine_error(file: Path, error: Exception) -> DataError | None:
    """Return the error for a disk or memory failure while reading `file`; None if the file itself is at fault."""
    if full := memory_error(error):
        return DataError(f"{file} cannot be read: {full}")
    found = _ERRNO.search(str(error))
    number = error.errno if isinstance(error, OSError) and error.errno else int(found[1]) if found else None
    if not number or number in _NOT_THERE:
        return None
    return system_error(OSError(number, os.strerror(number), str(file)))


@cache
def package(name: str) -> Any:
    """Import the optional package `name`. Raises `MissingExtraError`, which says how to install it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"this data format needs the package {name.partition('.')[0]}: pip install 'bertwright[formats]'"
        ) from error
