"""What can be wrong with a file of examples, and the packages that some formats need."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from bertwright.core.errors import DataError, MissingExtraError

_FROM_LIBRARIES = (OSError, EOFError, ValueError, KeyError, TypeError, RuntimeError, MemoryError, zlib.error)
"""What zlib, h5py and pyarrow raise for damaged files (Arrow's exceptions are kinds of these)."""


class ShardError(DataError):
    """One file of examples is damaged, hostile or not what it says; the others may be used without it."""

    def __init__(self, file: Path, fault: str) -> None:
        self.file, self.fault = file, fault
        super().__init__(f"{file}: {fault}. Make or fetch this file again, or leave it out by quarantine.")


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Turn what libraries raise while `file` is read into a `ShardError` that names it."""
    try:
        yield
    # Not every exception: a fault of ours is not to be taken for a damaged file.
    except _FROM_LIBRARIES as error:
        raise ShardError(file, f"cannot be read: {str(error).strip() or type(error).__name__}") from error


@cache
def package(name: str) -> Any:
    """The optional package `name`; `MissingExtraError` says how to install it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"this data format needs the package {name.partition('.')[0]}: pip install 'bertwright[formats]'"
        ) from error
