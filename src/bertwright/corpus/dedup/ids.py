"""Documents and paragraphs by number: what the task lists set down of those to drop.

An id is (part, row), which is the place in the sources: the lower id comes first.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertwright.corpus.part import map_array

BUCKET = 2**20
"""Rows per task, about: 24 bytes of memory each, and as much again while sorting."""
_ROW_BITS = 32

Ids = NDArray[np.uint64]
Rows = NDArray[np.int64]


def ids_of(part: int, rows: Rows) -> Ids:
    """The ids of rows of a part."""
    return rows.astype(np.uint64) | np.uint64(part << _ROW_BITS)


def parts_and_rows(ids: Ids) -> tuple[Rows, Rows]:
    """The part and the row of each id."""
    return (ids >> np.uint64(_ROW_BITS)).astype(np.int64), (ids & np.uint64(2**_ROW_BITS - 1)).astype(np.int64)


def prefix_bits(rows: int) -> int:
    """How many leading bits of a hash part so many rows into buckets of at most `BUCKET`, about."""
    return max(0, (rows - 1) // BUCKET).bit_length()


def with_prefix(hashes: Ids, prefix: int, bits: int) -> Rows:
    """Where the leading `bits` bits of a hash are `prefix`."""
    high = hashes >> np.uint64(1)  # 63 bits, so that a prefix of no bits at all is a shift numpy defines
    return np.flatnonzero(high >> np.uint64(63 - bits) == prefix)


@dataclass(frozen=True)
class Dropped:
    """Files of sorted ids, none of them in memory."""

    files: tuple[Path, ...] = ()

    def rows(self, part: int) -> Rows:
        """The rows of this part, sorted, each once."""
        found = [np.empty(0, np.int64)]
        for path in self.files:
            ids = map_array(path)
            bounds = np.array([part << _ROW_BITS, (part + 1) << _ROW_BITS], np.uint64)
            first, last = np.searchsorted(ids, bounds)
            found.append(ids[first:last].astype(np.int64) - (part << _ROW_BITS))
        return np.unique(np.concatenate(found))
