"""Files of hashes and ids: columns of numbers of 64 bits and nothing else, so that opening one costs little.

Thousands of them are opened for a few rows each, and reading the head of an `.npy` file takes longer than that.
"""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertwright.core.done import mark_done
from bertwright.core.files import naming, write_atomic

SUFFIX = ".u64"
Columns = NDArray[np.uint64]
"""[columns, rows], or [tables, columns, rows]."""


def write_columns(path: Path, columns: Columns) -> None:
    """Write an array of any shape, row by row, as a file that is whole or absent, and beside it the note of `done`."""
    write_atomic(path, columns.astype("<u8", copy=False).tobytes(), sync=False)
    mark_done(path.with_suffix(".json"), [path])


def read_columns(path: Path, *shape: int) -> Columns:
    """What a file holds, as [*shape, rows]; it is not read before it is looked at."""
    with naming(path), open(path, "rb") as handle:
        if not handle.seek(0, 2):
            return np.empty((*shape, 0), np.uint64)
        mapped = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
    return np.frombuffer(mapped, "<u8").reshape(*shape, -1)
