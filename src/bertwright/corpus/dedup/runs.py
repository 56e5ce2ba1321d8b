"""Sorted runs: rows of neighbouring parts in the order of their hashes, on disk.

What has one hash is brought together as in an external sort (Knuth, The Art of Computer Programming 3, §5.4): each run
is sorted once, and a task reads from every run only the rows whose hash begins with its prefix. Every row is read a
fixed number of times, however many tasks there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from bertwright.corpus.dedup.columns import Columns, read_columns

BUCKET = 2**20
"""Rows per task, about: 24 bytes of memory each, and as much again while sorting."""
RUN = 2**15
"""Rows per run, about."""


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
    found = []
    for path in runs:
        stored = read_columns(path, *shape)[table]
        first = np.searchsorted(stored[0], np.uint64(prefix << 64 - bits)) if prefix else 0
        end = prefix + 1 << 64 - bits
        last = np.searchsorted(stored[0], np.uint64(end)) if end < 2**64 else stored.shape[1]
        found.append(stored[:, first:last].copy())
    return np.concatenate(found, axis=1)
