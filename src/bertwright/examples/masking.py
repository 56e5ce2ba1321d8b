"""Masking: which tokens are predicted and what stands in their place (Devlin et al. 2019 §3.1; 80 / 10 / 10).

The number is exact: min(P, max(1, round(length * rate))), length with special tokens, rounding half to even, as in
create_pretraining_data.py. That script shuffles the candidates; here the ones with the smallest hashes are
taken, which is the same distribution and needs no generator. Hashes are keyed per row, so masks do not depend on
batch, rank or worker.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import below, bits, uniform

ACTION = 1 << 16
"""Counter offset of the 80 / 10 / 10 choice at a position; positions are below 2^16."""
REPLACEMENT = 2 << 16
"""Counter offset of the random replacement at a position."""
_POSITION = np.uint64(0xFFFF)
_NEVER = np.uint64(0xFFFF_FFFF_FFFF_FFFF)

Ids = NDArray[np.int64]
Keys = NDArray[np.uint64]


@dataclass(frozen=True)
class Masking:
    """The settings of a phase's masks; `replacements` are the ids that a random token may be."""

    rate: float
    max_predictions: int
    mask: int
    replacements: Ids

    def counts(self, lengths: Ids, specials: Ids) -> Ids:
        """Predicted tokens of sequences of these lengths, `specials` tokens of which are [CLS] and [SEP]."""
        wanted = np.maximum(1, np.rint(lengths * self.rate).astype(np.int64))
        counts: Ids = np.minimum(np.minimum(wanted, self.max_predictions), lengths - specials)
        return counts

    def choose(self, keys: Keys, lengths: Ids, a_counts: Ids, counts: Ids) -> tuple[Ids, Ids]:
        """The chosen tokens as (sequence, position), both rising; position 0 is [CLS], a_count + 1 the first [SEP]."""
        if not len(lengths):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        positions = np.arange(lengths.max())
        ranked = (bits(keys[:, None], positions) & ~_POSITION) | positions.astype(np.uint64)
        ranked[positions >= lengths[:, None] - 1] = _NEVER
        ranked[:, 0] = _NEVER
        ranked[np.arange(len(lengths)), a_counts + 1] = _NEVER
        most = int(counts.max())
        if most < ranked.shape[1]:
            ranked = np.partition(ranked, most - 1, axis=1)[:, :most]
        ranked.sort(axis=1)
        taken = np.arange(most) < counts[:, None]
        chosen = np.where(taken, (ranked & _POSITION).astype(np.int64), len(positions))
        chosen.sort(axis=1)
        return np.repeat(np.arange(len(lengths)), counts), chosen[taken]

    def replace(self, keys: Keys, positions: Ids, labels: Ids) -> Ids:
        """What stands at chosen positions: 80 % [MASK], 10 % the token itself, 10 % a random replacement."""
        action = uniform(keys, positions + ACTION)
        random = self.replacements[below(keys, positions + REPLACEMENT, len(self.replacements))]
        return np.where(action < 0.8, self.mask, np.where(action < 0.9, labels, random))
