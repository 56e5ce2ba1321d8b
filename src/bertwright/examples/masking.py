"""Masking: which tokens are predicted and what replaces them (Devlin et al. 2019 §3.1; 80 / 10 / 10).

The exact number is min(P, max(1, round(length * rate))), with special tokens counted in length and rounding half to
even, as in create_pretraining_data.py. That script shuffles the candidates; here the ones with the smallest hashes are
taken, which gives the same distribution without a generator. Hashes are keyed per row, so masks do not depend on batch,
rank or worker. With a Bernoulli draw per token (LDDL's rule), tokens whose hash is below the rate are taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import below, bits, uniform, unit_interval
from bertwright.examples.config import MaskingConfig
from bertwright.examples.vocabulary import Vocabulary

ACTION = 1 << 16
"""Counter offset of the 80 / 10 / 10 choice at a position; positions are below 2^16."""
REPLACEMENT = 2 << 16
"""Counter offset of the random replacement at a position."""
_POSITION = np.uint64(0xFFFF)
_NEVER = np.uint64(0xFFFF_FFFF_FFFF_FFFF)

Ids = NDArray[np.int64]
Keys = NDArray[np.uint64]
Table = NDArray[np.bool_]
"""[B, S] a mask over the positions of each sequence."""


@dataclass(frozen=True)
class Masking:
    """The masking rules of a phase at one of its steps."""

    config: MaskingConfig
    rate: float
    most: int
    """Maximum number of predicted tokens per sequence."""
    vocabulary: Vocabulary

    @classmethod
    def at(cls, config: MaskingConfig, step: int, length: int, vocabulary: Vocabulary) -> Masking:
        """The rules at a step of a phase whose sequences have at most `length` tokens."""
        return cls(config, config.rate_at(step), config.most(length), vocabulary)

    @property
    def counted(self) -> bool:
        """Whether the lengths alone determine how many tokens are predicted."""
        return self.config.count == "exact" and self.config.unit == "tokens"

    def counts(self, lengths: Ids, specials: Ids) -> Ids:
        """[B] number of predictions by the exact rule, for `lengths` [B] with `specials` [B] special tokens each."""
        # np.rint rounds half to even, as Python does in the original script.
        wanted = np.maximum(1, np.rint(lengths * self.rate).astype(np.int64))
        counts: Ids = np.minimum(np.minimum(wanted, self.most), lengths - specials)
        return counts

    def choose(self, keys: Keys, lengths: Ids, special: Table, tokens: NDArray[np.integer]) -> tuple[Ids, Ids]:
        """Choose P tokens of B sequences; returns (sequence [P], position [P]), both increasing.

        `keys` and `lengths` are [B]. `special` [B, S] marks [CLS], [SEP] and positions after the end of a sequence;
        `tokens` [T] are the ids.
        """
        # A rank that has no sequence for a micro-batch gets an empty one.
        if not len(lengths):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        hashes = bits(keys[:, None], np.arange(special.shape[1]))
        quota = self._quota(lengths, special, hashes)
        if self.config.unit != "tokens":
            continues = np.zeros_like(special)
            continues[np.arange(special.shape[1]) < lengths[:, None]] = self.vocabulary.continuation[tokens]
            longest = self.config.longest_span if self.config.unit == "spans" else 1
            eligible = ~special if self.config.count == "exact" else ~special & self._below_rate(hashes)
            # Imported here, because few phases mask whole words.
            from bertwright.examples.whole_word_masking import Candidates, choose_words

            return choose_words(keys, hashes, Candidates(~special, continues, eligible), quota, longest)
        # Hash in the high bits, position in the low bits: one sort ranks and identifies the positions, without ties.
        ranked = (hashes & ~_POSITION) | np.arange(special.shape[1], dtype=np.uint64)
        ranked[special] = _NEVER
        most = int(quota.max())
        if most < ranked.shape[1]:
            # Only the smallest ones need to be sorted.
            ranked = np.partition(ranked, max(0, most - 1), axis=1)[:, :most]
        ranked.sort(axis=1)
        taken = np.arange(most) < quota[:, None]
        chosen = np.where(taken, (ranked & _POSITION).astype(np.int64), special.shape[1])
        chosen.sort(axis=1)
        return np.repeat(np.arange(len(lengths)), quota), chosen[taken]

    def replace(self, keys: Keys, positions: Ids, labels: Ids) -> Ids:
        """[P] the ids that replace P chosen tokens: [MASK], a random entry, or the token itself, each by its share.

        `keys` [P] are the keys of the sequences, `labels` [P] the original tokens.
        """
        config = self.config
        # The originals also draw special and unused entries, which no text contains; "all" reproduces their files.
        entries = self.vocabulary.words if config.random_tokens == "words" else np.arange(self.vocabulary.size)
        action = uniform(keys, positions + ACTION)
        random = entries[below(keys, positions + REPLACEMENT, len(entries))]
        kept = action < 1 - config.random_share
        return np.where(action < config.mask_share, self.vocabulary.mask, np.where(kept, labels, random))

    def _quota(self, lengths: Ids, special: Table, hashes: Keys) -> Ids:
        """The maximum number of tokens to choose in each sequence; with unit "tokens", the exact number."""
        if self.config.count == "exact":
            # `special` also includes the positions after the end of a sequence.
            return self.counts(lengths, special.sum(axis=1) - (special.shape[1] - lengths))
        if self.config.unit == "words":
            return np.full(len(lengths), self.most)
        drawn: Ids = np.minimum((self._below_rate(hashes) & ~special).sum(axis=1), self.most)
        return drawn

    def _below_rate(self, hashes: Keys) -> Table:
        return unit_interval(hashes) < self.rate
