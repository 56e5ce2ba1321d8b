"""Numeric ids of documents and paragraphs, and files with the ids to drop.

An id is (part, row), the position in the sources: the lower id comes first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertwright.corpus.dedup.runs import read_columns, read_sorted, write_columns
from bertwright.corpus.part import is_written

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

    @classmethod
    def of(cls, tasks: Iterable[tuple[Path, range]]) -> Dropped:
        """Built from tasks (file, its parts), in source order."""
        listed = list(tasks)
        return cls(tuple(path for path, _ in listed), tuple(parts.start for _, parts in listed))

    def rows(self, part: int) -> Rows:
        """The rows [N] to drop of this part, sorted."""
        if not self.files:
            return np.empty(0, np.int64)
        path = self.files[bisect_right(self.firsts, part) - 1]
        return parts_and_rows(of_part(path, part))[1]
