"""Masking: which tokens are predicted and what replaces them (Devlin et al. 2019 §3.1; 80 / 10 / 10).

The exact number is min(P, max(1, round(length * rate))), with special tokens counted in length and rounding half to
even, as in create_pretraining_data.py. That script shuffles the candidates; here the ones with the smallest hashes are
taken, which gives the same distribution without a generator. Hashes are keyed per row, so masks do not depend on batch,
rank or worker. With a Bernoulli draw per token (LDDL's rule), tokens whose hash is below the rate are taken.

Whole words and spans of words are selected by a greedy rule. Words are visited in random order; a word that would
exceed the quota is skipped (Google's whole-word masking, create_pretraining_data.py). A word is a piece with the ##
pieces after it and never crosses a special token; in that script it may, because the script checks only for ##. A span
(Lan et al. 2020 §4.2, ALBERT) begins at a word, has n words with a probability proportional to 1/n, is shortened if the
quota or the segment ends, and is skipped if it overlaps a selected one. Each piece then has a separate 80 / 10 / 10
choice, as in the script.
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


SPAN = 5 << 16
"""Counter offset of the draw of a span's length, at the position of its first word."""


@dataclass(frozen=True)
class Candidates:
    """The positions that may be predicted in B sequences."""

    tokens: Table
    """[B, S] which positions may be predicted: all except special tokens and those after the end."""
    continues: Table
    """[B, S] which positions hold a ## piece."""
    eligible: Table
    """[B, S] which words, identified by their first position, may be selected."""


def choose_words(keys: Keys, hashes: Keys, candidates: Candidates, quota: Ids, longest: int) -> tuple[Ids, Ids]:
    """Choose at most `quota` [B] tokens per sequence, in spans of at most `longest` words.

    Returns the P chosen tokens as (sequence [P], position [P]), both increasing. `keys` [B] are the keys of the
    sequences, `hashes` [B, S] those of the positions.
    """
    first = candidates.tokens.copy()
    # A ## piece after a special token begins a word; the original script checks only for ## and joins them.
    first[:, 1:] &= ~(candidates.continues[:, 1:] & candidates.tokens[:, :-1])
    number = np.cumsum(first, axis=1) - 1  # index of the word that contains each position
    words = int(number[:, -1].max()) + 1
    # Extra columns after the last word, so that the steps of a span never leave the table.
    sizes, rank, follows = (np.zeros((len(quota), words + longest), kind) for kind in (np.int64, float, bool))
    np.add.at(sizes, (np.nonzero(candidates.tokens)[0], number[candidates.tokens]), 1)
    row, place = np.nonzero(first)
    word = number[first]
    # Above any random number, so that ineligible words come last.
    rank[:] = 2.0
    rank[row, word] = np.where(candidates.eligible[row, place], unit_interval(hashes[row, place]), 2.0)
    follows[row, word] = (place > 0) & candidates.tokens[row, place - 1]
    length = np.ones_like(sizes)
    if longest > 1:
        length[row, word] = _span_lengths(uniform(keys[row], place + SPAN), longest)
    chosen = _greedy(sizes, rank, follows, length, quota, longest)
    sequences, positions = np.nonzero(candidates.tokens & np.take_along_axis(chosen, np.maximum(number, 0), axis=1))
    return sequences, positions


def _greedy(sizes: Ids, rank: NDArray[np.float64], follows: Table, length: Ids, quota: Ids, longest: int) -> Table:
    """[B, W] the chosen words, from their `sizes` in tokens, their random order `rank` (2 or more: ineligible), whether
    each `follows` the previous word without a special token between, and the `length` of the span that begins there."""
    order = np.argsort(rank, axis=1)
    drawn = (rank < 2.0).sum(axis=1)
    chosen, left, rows, tried = np.zeros(sizes.shape, bool), quota.copy(), np.arange(len(quota)), np.zeros_like(quota)
    if longest == 1:  # until the quota is first reached, words are taken in order
        sums = np.cumsum(np.take_along_axis(sizes, order, axis=1), axis=1)
        whole = (sums <= quota[:, None]) & (np.arange(sums.shape[1]) < drawn[:, None])
        np.put_along_axis(chosen, order, whole, axis=1)
        tried = whole.sum(axis=1)
        left = quota - np.where(tried > 0, sums[rows, tried - 1], 0)
    while (active := np.flatnonzero((tried < drawn) & (left > 0))).size:
        word, room = order[active, tried[active]], left[active]
        tried[active] += 1
        fits, taken = ~chosen[active, word] & (sizes[active, word] <= room), np.zeros(len(active), np.int64)
        spans = []
        for step in range(longest):
            member = word + step
            if step:
                fits = fits & (step < length[active, word]) & follows[active, member]
                fits = fits & (taken + sizes[active, member] <= room)
            taken += np.where(fits, sizes[active, member], 0)
            spans.append((member, fits))
        # A span that overlaps a chosen one is skipped entirely, or its words would count twice.
        clear = ~np.any([chosen[active, member] & inside for member, inside in spans], axis=0)
        for member, inside in spans:
            chosen[rows[active][inside & clear], member[inside & clear]] = True
        left[active] -= np.where(clear, taken, 0)
    return chosen


def _span_lengths(u: NDArray[np.float64], longest: int) -> Ids:
    weights = 1 / np.arange(1, longest + 1)
    return 1 + np.searchsorted(np.cumsum(weights) / weights.sum(), u, side="right").clip(max=longest - 1)
