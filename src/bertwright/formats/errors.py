"""What can be wrong with a file of examples, and the packages that some formats need."""

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

from bertwright.core.errors import DataError, MissingExtraError, of_memory, of_the_system

_FROM_LIBRARIES = (OSError, EOFError, ValueError, KeyError, TypeError, RuntimeError, MemoryError, zlib.error)
"""What zlib, h5py and pyarrow raise for damaged files (Arrow's exceptions are kinds of these)."""
_NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR}
"""What the system answers where there is no such file; all else that it answers is no matter of what a file holds."""
# HDF5 tells of the system's answer in its text alone.
_ERRNO = re.compile(r"\berrno = (\d+)")


class ShardError(DataError):
    """One file of examples is damaged, hostile or not what it says; the others may be used without it."""

    def __init__(self, file: Path, fault: str) -> None:
        self.file, self.fault = file, fault
        super().__init__(f"{file}: {fault}. Make or fetch this file again, or leave it out by quarantine.")

    def __reduce__(self) -> tuple[type[ShardError], tuple[Path, str]]:
        # From a worker process: an exception is made again from its arguments, which are the sentence alone.
        return ShardError, (self.file, self.fault)


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Turn what libraries raise while `file` is read into a `ShardError` that names it.

    Where it is the disk that fails, or memory that is out, it is another `DataError`: the file may be whole, and is not
    to be left out for it.
    """
    try:
        yield
    # Not every exception: a fault of ours is not to be taken for a damaged file.
    except _FROM_LIBRARIES as error:
        if told := _of_the_machine(file, error):
            raise told from error
        raise ShardError(file, f"cannot be read: {str(error).strip() or type(error).__name__}") from error


def _of_the_machine(file: Path, error: Exception) -> DataError | None:
    """The error for a disk or a memory that failed while `file` was read; None where it is the file."""
    if full := of_memory(error):
        return DataError(f"{file} cannot be read: {full}")
    told = _ERRNO.search(str(error))
    number = error.errno if isinstance(error, OSError) and error.errno else int(told[1]) if told else None
    if not number or number in _NOT_THERE:
        return None
    return of_the_system(OSError(number, os.strerror(number), str(file)))


@cache
def package(name: str) -> Any:
    """The optional package `name`; `MissingExtraError` says how to install it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"this data format needs the package {name.partition('.')[0]}: pip install 'bertwright[formats]'"
        ) from error
