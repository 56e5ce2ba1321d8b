"""The order of an epoch: a keyed permutation that is computed instead of stored.

A generalised Feistel network (Black and Rogaway 2002, "Ciphers with Arbitrary Finite Domains", method 3) permutes
[0, a*b) with a and b near the square root of n; results outside [0, n) are permuted again (cycle walking), which
is rare because a*b exceeds n by less than a. Position i of the epoch is computed without the positions before it.

A store larger than memory should not be read in random order. Above `IN_MEMORY` rows, blocks of `BLOCK` consecutive
rows are permuted, and rows are permuted within windows of `WINDOW` positions: each window of an epoch reads
WINDOW / BLOCK small pieces of the store, mixed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertwright.core.rng import below, fold

IN_MEMORY = 1 << 22
"""Maximum number of rows for which an epoch is one permutation (at length 128 about 1 GB of tokens)."""
BLOCK = 1 << 10
"""Consecutive rows that stay together above `IN_MEMORY` rows."""
WINDOW = 1 << 20
"""Number of positions within which rows are mixed above `IN_MEMORY` rows."""
_ROUNDS = 8

Indices = NDArray[np.int64]


class Permutation:
    """The bijection of [0, n) determined by `key`; call it with an array of positions."""

    def __init__(
        self, key: int, n: int, *, in_memory: int = IN_MEMORY, block: int = BLOCK, window: int = WINDOW
    ) -> None:
        self._rows_key, self._n = key, n
        self._window = n if n <= in_memory else window
        blocks = 1 if n <= in_memory else -(-n // block)
        # Blocks and rows within a window use different keys, or their orders would be correlated.
        order = permute(fold(key, 1)[0], blocks, np.arange(blocks))
        self._block_rows = order * block
        sizes = np.minimum(n - self._block_rows, block) if blocks > 1 else np.array([n])
        self._block_positions = np.cumsum(sizes) - sizes

    def __call__(self, positions: ArrayLike) -> Indices:
        """The row at each position (0 <= position < n)."""
        positions = np.asarray(positions, np.int64)
        window = positions // max(1, self._window)
        first = window * self._window
        length = np.minimum(self._n - first, self._window)
        mixed = first + permute(fold(fold(self._rows_key, 2), window), length, positions - first)
        block = np.searchsorted(self._block_positions, mixed, side="right") - 1
        rows: Indices = self._block_rows[block] + mixed - self._block_positions[block]
        return rows


def permute(key: ArrayLike, n: ArrayLike, index: ArrayLike) -> Indices:
    """Map `index` through the keyed bijection of [0, n); key, n and index broadcast (n < 2^62)."""
    keys, n, index = np.broadcast_arrays(
        np.asarray(key, np.uint64), np.asarray(n, np.int64), np.asarray(index, np.int64)
    )
    a = np.ceil(np.sqrt(n)).astype(np.int64)
    b = -(-n // np.maximum(a, 1))
    result = _feistel(keys, a, b, index)
    while (outside := np.nonzero(result >= n))[0].size:
        result[outside] = _feistel(keys[outside], a[outside], b[outside], result[outside])
    return result


def _feistel(key: NDArray[np.uint64], a: Indices, b: Indices, index: Indices) -> Indices:
    left, right = index // b, index % b
    for number in range(0, _ROUNDS, 2):
        left = (left + below(fold(key, number), right, a)) % a
        right = (right + below(fold(key, number + 1), left, b)) % b
    return left * b + right
