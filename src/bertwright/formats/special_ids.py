"""Checks that examples begin, end and are masked with the vocabulary's ids of [CLS], [SEP] and [MASK]."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from bertwright.examples.instances import Instances

_TELLING = 16
"""Number of predictions from which their most common id reliably shows whether it is [MASK]."""


class SpecialIds:
    """Counts the ids at the positions of special tokens."""

    def __init__(self, vocabulary: Sequence[str] | None) -> None:
        self._vocabulary = vocabulary
        self._begins: Counter[int] = Counter()
        self._lasts: Counter[int] = Counter()
        self.shown: Counter[int] = Counter()
        """Counts of the ids at predicted positions."""

    def add(self, block: Instances) -> None:
        """Count the examples of a block."""
        if not len(block):
            return
        places = (self._begins, block.cu_seqlens[:-1]), (self._lasts, block.cu_seqlens[1:] - 1)
        for seen, where in (*places, (self.shown, block.predicted)):
            ids = np.sort(block.token_ids[where])
            # Not `np.unique`: it loads numpy.ma, which takes longer than `check` takes for everything else here.
            first = np.flatnonzero(np.diff(ids, prepend=ids[:1] - 1))
            counts = np.diff(first, append=len(ids))
            seen.update(dict(zip(ids[first].tolist(), counts.tolist(), strict=True)))

    def faults(self) -> list[str]:
        """Return a sentence for each fault; without a vocabulary, only that there is more than one id."""
        faults = []
        for seen, verb, entry in ((self._begins, "begin", "[CLS]"), (self._lasts, "end", "[SEP]")):
            if self._vocabulary is None:
                if len(seen) > 1:
                    faults.append(
                        f"examples {verb} with {len(seen):,} different ids, but all should have the id of {entry}"
                    )
                continue
            number = self._vocabulary.index(entry)
            other = {other_id: count for other_id, count in seen.items() if other_id != number}
            if other:
                most = max(other, key=lambda other_id: other[other_id])
                faults.append(f"{sum(other.values()):,} examples {verb} with id {most}, not {entry} ({number})")
        return faults + self._mask()

    def _mask(self) -> list[str]:
        # With few predictions, all may be kept or random tokens by chance.
        if self._vocabulary is None or self.shown.total() < _TELLING:
            return []
        ((shown, count),), number = self.shown.most_common(1), self._vocabulary.index("[MASK]")
        # 80 % of predictions are masked; if most show another id, the examples were made with another vocabulary.
        if shown == number or 2 * count <= self.shown.total():
            return []
        return [f"id {shown} is at most predicted positions, not [MASK] ({number})"]
