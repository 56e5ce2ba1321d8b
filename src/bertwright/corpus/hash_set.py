"""A set of hashes that many arrays of hashes are searched for."""

from __future__ import annotations

import numpy as np

from bertwright.corpus.ngrams import Hashes

_TABLE_BITS = 22


class HashSet:
    """The set of hashes [N] to search texts for."""

    def __init__(self, hashes: Hashes) -> None:
        self.hashes = np.unique(hashes)
        self._table = np.zeros(2**_TABLE_BITS, bool)  # filters out most hashes that are not in the set
        self._table[self._places(self.hashes)] = True

    def intersection(self, hashes: Hashes) -> Hashes:
        """[F] the hashes of the set that are among `hashes` [N], sorted and unique."""
        likely = hashes[self._table[self._places(hashes)]]
        places = np.searchsorted(self.hashes, likely)
        # `searchsorted` returns the length for a value above the last one.
        return np.unique(likely[self.hashes[np.minimum(places, len(self.hashes) - 1)] == likely])

    @staticmethod
    def _places(hashes: Hashes) -> Hashes:
        return hashes >> np.uint64(64 - _TABLE_BITS)
