"""Whether examples begin, end and are masked with the ids that the vocabulary has for [CLS], [SEP] and [MASK]."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from bertwright.examples.instances import Instances

_TELLING = 16
"""Predictions from which the id that most of them show tells whether it is [MASK]."""


class SpecialIds:
    """Counts of the ids at the places of special tokens."""

    def __init__(self, vocabulary: Sequence[str] | None) -> None:
        self._vocabulary = vocabulary
        self._begins: Counter[int] = Counter()
        self._lasts: Counter[int] = Counter()
        self.shown: Counter[int] = Counter()
        """What stands at predicted positions."""

    def add(self, block: Instances) -> None:
        """Count the examples of a block."""
        if not len(block):
            return
        places = (self._begins, block.cu_seqlens[:-1]), (self._lasts, block.cu_seqlens[1:] - 1)
        for seen, where in (*places, (self.shown, block.predicted)):
            ids, counts = np.unique(block.token_ids[where], return_counts=True)
            seen.update(dict(zip(ids.tolist(), counts.tolist(), strict=True)))

    def faults(self) -> list[str]:
        """What is wrong with them; without a vocabulary, only that there is more than one id."""
        faults = []
        for seen, verb, entry in ((self._begins, "begin", "[CLS]"), (self._lasts, "end", "[SEP]")):
            if self._vocabulary is None:
                if len(seen) > 1:
                    faults.append(f"examples {verb} with {len(seen):,} different ids, where all should have {entry}")
                continue
            number = self._vocabulary.index(entry)
            other = {other_id: count for other_id, count in seen.items() if other_id != number}
            if other:
                most = max(other, key=lambda other_id: other[other_id])
                faults.append(f"{sum(other.values()):,} examples {verb} with id {most}, not {entry} ({number})")
        return faults + self._mask()

    def _mask(self) -> list[str]:
        # A few predictions may all show kept or random tokens by chance.
        if self._vocabulary is None or self.shown.total() < _TELLING:
            return []
        ((shown, count),), number = self.shown.most_common(1), self._vocabulary.index("[MASK]")
        # Eight in ten are masked: another id on most of them is that of another vocabulary.
        if shown == number or 2 * count <= self.shown.total():
            return []
        return [f"id {shown} stands at most predicted positions, not [MASK] ({number})"]
