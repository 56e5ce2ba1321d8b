"""Bottom-k sampling (keep the smallest hashes): finds equal rows across many files in bounded memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import bits
from bertwright.examples.instances import Ints

Hashes = NDArray[np.uint64]

KEPT = 1 << 20
"""Hashes kept over all files (24 bytes each)."""


def row_hashes(values: NDArray[Any], cu: Ints) -> Hashes:
    """[N] one hash per row, of its values and their order."""
    inside = np.arange(cu[-1]) - np.repeat(cu[:-1], np.diff(cu))
    # Sums, because rows have any length; the hash of each value includes its position in the row.
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(bits(values, inside), dtype=np.uint64)])[cu]
    return np.diff(sums)


class Repeated(NamedTuple):
    """Of `sampled` distinct keys, `several` occur in several files, `differing` of these with different contents."""

    sampled: int
    several: int
    differing: int


class BottomK:
    """The smallest keys of each file, each with a content hash; a key is sampled in every file where it occurs."""

    def __init__(self, files: int) -> None:
        self._most = max(64, KEPT // max(files, 1))
        self._files: list[NDArray[np.uint64]] = []
        self._cut = np.uint64(np.iinfo(np.uint64).max)

    def begin_file(self) -> None:
        """Start the next file; rows added from now on belong to it."""
        self._files.append(np.zeros((2, 0), np.uint64))

    def add(self, keys: Hashes, contents: Hashes) -> None:
        """Add rows of the current file: their keys [N] and the hashes of their contents [N]."""
        kept = np.concatenate([self._files[-1], np.stack([keys, contents])[:, keys <= self._cut]], axis=1)
        _, first = np.unique(kept[0], return_index=True)
        self._files[-1] = kept[:, first[: self._most]]
        if len(first) > self._most:
            # Keys of this file above the cut are dropped, so keys above it are ignored in every file.
            self._cut = min(self._cut, self._files[-1][0, -1])

    def repeated(self) -> Repeated:
        """Count the keys that several files share."""
        numbers = np.repeat(np.arange(len(self._files)), [rows.shape[1] for rows in self._files])
        keys, contents = np.concatenate([*self._files, np.zeros((2, 0), np.uint64)], axis=1)
        kept = np.flatnonzero(keys <= self._cut)
        order = kept[np.argsort(keys[kept], kind="stable")]
        keys, contents, numbers = keys[order], contents[order], numbers[order]
        # The inverse of the first key differs from the key itself, so the first element always counts as a start.
        starts = np.flatnonzero(np.diff(keys, prepend=~keys[:1]) != 0)
        if not len(starts):
            return Repeated(0, 0, 0)
        several = np.minimum.reduceat(numbers, starts) != np.maximum.reduceat(numbers, starts)
        differing = several & (np.minimum.reduceat(contents, starts) != np.maximum.reduceat(contents, starts))
        return Repeated(len(starts), int(several.sum()), int(differing.sum()))
