"""Files of hashes and ids, and sorted runs of them: rows of neighbouring parts in the order of their hashes, on disk.

A file holds columns of numbers of 64 bits and nothing else. What has one hash is brought together as in an external
sort (Knuth, The Art of Computer Programming 3, §5.4): each run is sorted once, and a task reads from every run only the
rows whose hash begins with its prefix. Every row is read a fixed number of times, however many tasks there are.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertwright.core.done import mark_done
from bertwright.core.files import naming, write_atomic

# Thousands of files are opened for a few rows each, and reading the head of an `.npy` file takes longer than that.
SUFFIX = ".u64"
Columns = NDArray[np.uint64]
"""[columns, rows], or [tables, columns, rows]."""
BUCKET = 2**20
"""Rows per task, about: 24 bytes of memory each, and as much again while sorting."""
RUN = 2**15
"""Rows per run, about."""


def write_columns(path: Path, columns: Columns) -> None:
    """Write an array of any shape, row by row, as a file that is whole or absent, and beside it the note of `done`."""
    write_atomic(path, columns.astype("<u8", copy=False).tobytes(), sync=False)
    mark_done(path.with_suffix(".json"), [path])


def read_columns(path: Path, *shape: int) -> Columns:
    """What a file holds, as [*shape, rows]; it is not read before it is looked at."""
    with naming(path), open(path, "rb") as handle:
        # A file of no bytes cannot be mapped.
        if not handle.seek(0, 2):
            return np.empty((*shape, 0), np.uint64)
        mapped = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
    return np.frombuffer(mapped, "<u8").reshape(*shape, -1)


def groups(sizes: Sequence[int]) -> list[range]:
    """Neighbouring parts that have about `RUN` rows together, given how many each has; a larger part is alone."""
    firsts, rows = list[int](), RUN + 1
    for part, size in enumerate(sizes):
        if rows + size > RUN:
            firsts.append(part)
            rows = 0
        rows += size
    return [range(*bounds) for bounds in pairwise([*firsts, len(sizes)])]


def prefix_bits(rows: int) -> int:
    """How many leading bits of a hash part so many rows into buckets of at most `BUCKET`, about."""
    return max(0, (rows - 1) // BUCKET).bit_length()


def bucket(runs: Iterable[Path], shape: tuple[int, int], prefix: int, bits: int, table: int = 0) -> Columns:
    """The rows of all runs whose hash begins with `prefix` (of `bits` bits), as [columns, rows].

    A run holds `shape` = (tables, columns) of rows; each table is sorted by its first column, the hash.
    """
    rows = []
    for path in runs:
        stored = read_columns(path, *shape)[table]
        first = np.searchsorted(stored[0], np.uint64(prefix << 64 - bits)) if prefix else 0
        # The end of the last prefix is 2**64, which no 64-bit number holds.
        end = prefix + 1 << 64 - bits
        last = np.searchsorted(stored[0], np.uint64(end)) if end < 2**64 else stored.shape[1]
        # A copy: views would keep all runs mapped until the last one was read.
        rows.append(stored[:, first:last].copy())
    return np.concatenate(rows, axis=1)
