"""Selects whole words and spans of words to mask, by a greedy rule for many sequences in lockstep.

Words are visited in random order; a word that would exceed the quota is skipped (Google's whole-word masking,
create_pretraining_data.py). A word is a piece with the ## pieces after it and never crosses a special token; in that
script it may, because the script checks only for ##. A span (Lan et al. 2020 §4.2, ALBERT) begins at a word, has n
words with a probability proportional to 1/n, is shortened if the quota or the segment ends, and is skipped if it
overlaps a selected one. Each piece then has a separate 80 / 10 / 10 choice, as in the script.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import uniform, unit_interval

SPAN = 5 << 16
"""Counter offset of the draw of a span's length, at the position of its first word."""

Ids = NDArray[np.int64]
Keys = NDArray[np.uint64]
Table = NDArray[np.bool_]


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
