"""Files of hashes and ids: sorted runs of rows of neighbouring parts, and the ids of documents and paragraphs to drop.

A file holds columns of 64-bit numbers and, if tasks read parts of it, the first row of each part. Rows with the same
hash are grouped as in an external sort (Knuth, The Art of Computer Programming 3, §5.4): each run is sorted once, and
a task reads from every run only the rows whose hash begins with its prefix. Every row is read a fixed number of times,
regardless of the number of tasks. An id is (part, row), the position in the sources: the lower id comes first.
"""

from __future__ import annotations

import mmap
import os
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertwright.core.files import naming, write_atomic
from bertwright.core.task_records import mark_done
from bertwright.corpus.part import is_written

# Not `.npy`: thousands of files are opened for a few rows each, and parsing an `.npy` header takes longer than that.
SUFFIX = ".u64"
Columns = NDArray[np.uint64]
"""[columns, rows], or [tables, columns, rows]."""
BUCKET = 2**20
"""Approximate rows per task: 24 bytes of memory each, and the same again while sorting."""
RUN = 2**15
"""Approximate rows per run."""
_PREFIX_BITS = 10
"""Leading bits of a hash by which the rows of a run can be located without reading them."""
_PREFIXES = np.arange(2**_PREFIX_BITS, dtype=np.uint64) << np.uint64(64 - _PREFIX_BITS)


def write_columns(path: Path, *arrays: Columns) -> None:
    """Write arrays of any shape row by row; the file is complete or absent, with the note of `done` next to it."""
    write_atomic(path, b"".join(array.astype("<u8", copy=False).tobytes() for array in arrays), sync=False)
    mark_done(path.with_suffix(".json"), [path])


def write_sorted(path: Path, tables: Columns, fences: Columns) -> None:
    """Write tables [tables, columns, rows], each sorted by its first column, for `read_sorted`.

    `fences` [N] are the values of that column at which the readable parts begin; searching every file for each part
    would take longer than reading the part.
    """
    starts = [[*np.searchsorted(table[0], fences), table.shape[1]] for table in tables]
    write_columns(path, np.array(starts, np.uint64), tables)


def read_sorted(path: Path, shape: tuple[int, int], fences: int, parts: range, table: int = 0) -> Columns:
    """The rows [columns, rows] of neighbouring parts of one table of a file written by `write_sorted`.

    The file holds `shape` = (tables, columns) of rows and `fences` fences.
    """
    tables, columns = shape
    with naming(path):
        file = os.open(path, os.O_RDONLY)
        try:
            rows = (os.fstat(file).st_size // 8 - tables * (fences + 1)) // (tables * columns)
            bounds = _numbers(file, table * (fences + 1) + parts.start, len(parts) + 1)
            first, last = int(bounds[0]), int(bounds[-1])
            begins = tables * (fences + 1) + table * columns * rows + first
            read = [_numbers(file, begins + column * rows, last - first) for column in range(columns)]
        finally:
            os.close(file)
    return np.stack(read)


def _numbers(file: int, at: int, count: int) -> Columns:
    """`count` numbers [count] of an open file, starting at number `at`."""
    return np.frombuffer(os.pread(file, 8 * count, 8 * at), "<u8")


def read_columns(path: Path, *shape: int) -> Columns:
    """The contents of a file as [*shape, rows], memory-mapped and read on access."""
    with naming(path), open(path, "rb") as handle:
        # An empty file cannot be mapped.
        if not handle.seek(0, 2):
            return np.empty((*shape, 0), np.uint64)
        mapped = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
    return np.frombuffer(mapped, "<u8").reshape(*shape, -1)


def groups(sizes: Sequence[int]) -> list[range]:
    """Group neighbouring parts into about `RUN` rows each, given the rows of each part; a larger part is alone."""
    firsts, rows = list[int](), RUN + 1
    for part, size in enumerate(sizes):
        if rows + size > RUN:
            firsts.append(part)
            rows = 0
        rows += size
    return [range(*bounds) for bounds in pairwise([*firsts, len(sizes)])]


def prefix_bits(rows: int) -> int:
    """How many leading bits of a hash split `rows` rows into buckets of about `BUCKET` rows at most; 10 at most."""
    return min(_PREFIX_BITS, max(0, (rows - 1) // BUCKET).bit_length())


def write_run(path: Path, tables: Columns) -> None:
    """Write tables [tables, columns, rows], each sorted by its first column, the hash."""
    write_sorted(path, tables, _PREFIXES)


def bucket(runs: Iterable[Path], shape: tuple[int, int], prefix: int, bits: int, table: int = 0) -> Columns:
    """The rows [columns, rows] of all runs whose hash begins with `prefix` (of `bits` bits).

    Each run holds `shape` = (tables, columns) of rows.
    """
    each = 2 ** (_PREFIX_BITS - bits)
    prefixes = range(prefix * each, (prefix + 1) * each)
    return np.concatenate([read_sorted(path, shape, len(_PREFIXES), prefixes, table) for path in runs], axis=1)


_ROW_BITS = 32

Ids = NDArray[np.uint64]
Rows = NDArray[np.int64]


def ids_of(part: int, rows: Rows) -> Ids:
    """The ids [N] of rows [N] of a part."""
    return rows.astype(np.uint64) | np.uint64(part << _ROW_BITS)


def parts_and_rows(ids: Ids) -> tuple[Rows, Rows]:
    """The part [N] and the row [N] of each id [N]."""
    return (ids >> np.uint64(_ROW_BITS)).astype(np.int64), (ids & np.uint64(2**_ROW_BITS - 1)).astype(np.int64)


def fences(cut: Sequence[range]) -> Ids:
    """The lowest id [groups] of each group of neighbouring parts."""
    return np.array([parts.start << _ROW_BITS for parts in cut], np.uint64)


def of_part(path: Path, part: int) -> Ids:
    """The ids [N] of one part from a file of sorted ids."""
    stored: Ids = read_columns(path, 1)[0]
    first, last = np.searchsorted(stored, np.array([part << _ROW_BITS, part + 1 << _ROW_BITS], np.uint64))
    # Copied, because a view would keep the entire file mapped.
    return stored[first:last].copy()


@dataclass(frozen=True)
class Gather:
    """Files of sorted ids to be merged into one file for a group of neighbouring parts."""

    files: tuple[Path, ...]
    """Each has a fence for each group."""
    group: int
    groups: int
    out: Path


def gather(task: Gather) -> None:
    """Write the sorted, unique ids of the group, unless the file exists."""
    if not is_written(task.out):
        group = range(task.group, task.group + 1)
        ids = [np.empty(0, np.uint64), *(read_sorted(path, (1, 1), task.groups, group)[0] for path in task.files)]
        merged = np.sort(np.concatenate(ids))
        # Not `np.unique`, whose first call imports all of numpy's masked arrays.
        first = np.ones(len(merged), bool)
        first[1:] = merged[1:] != merged[:-1]
        write_columns(task.out, merged[first])


@dataclass(frozen=True)
class Dropped:
    """Files of sorted ids, each for some neighbouring parts; none is held in memory."""

    files: tuple[Path, ...] = ()
    firsts: tuple[int, ...] = ()
    """The first part of each file."""

    def rows(self, part: int) -> Rows:
        """The rows [N] to drop of this part, sorted."""
        if not self.files:
            return np.empty(0, np.int64)
        path = self.files[bisect_right(self.firsts, part) - 1]
        return parts_and_rows(of_part(path, part))[1]
