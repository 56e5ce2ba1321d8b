"""Plans: the original greedy walk over sentence lengths, all documents of a shard and all passes in lockstep.

The rule (Google's create_pretraining_data.py, shared by NVIDIA, MLCommons and Intel): sentences are gathered until
the target length is reached; A takes the first few, uniformly many; B is the rest, or, always for a chunk of one
sentence and else with `random_next_prob`, a stretch of another document, and then the unused sentences are walked
again. Differences: every number is a hash of (seed, pass, text of the document, chunk) instead of coming from
one generator seeded alike for all shards, and documents are not shuffled, because rows are permuted when drawn.

Without sentence pairs a row is as many consecutive sentences of one document as fit (RoBERTa's DOC-SENTENCES,
Liu et al. 2019 §4.2); a sentence longer than an example is continued in the next row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertwright.core.rng import below, fold, key, uniform
from bertwright.examples.config import ExamplesConfig
from bertwright.examples.store import Documents

ROW = np.dtype([("a_start", "<u4"), ("b_start", "<u4"), ("a_count", "<u2"), ("b_count", "<u2"), ("is_random", "u1")])
"""One example: where its segments start in the shard's tokens, how many tokens they have before truncation (at most
65,535), and whether B is random. Without sentence pairs `b_count` is 0."""

TRIES = 10
SHORT, TARGET = 0, 1  # counters of a document
SLOTS, SPLIT, COIN, START, TRY = 16, 0, 1, 2, 3  # a chunk has 16 counters; the tries take the last ten or so

Indices = NDArray[np.int64]
Keys = NDArray[np.uint64]


@dataclass
class _Walkers:
    """One per (pass, document), all at the same chunk number."""

    number: Indices
    key: Keys
    own: Indices
    target: Indices
    at: Indices
    """The sentence (pairs) or token (segments) that comes next."""
    end: Indices

    def unfinished(self) -> _Walkers:
        active = np.flatnonzero(self.at < self.end)
        return _Walkers(*(column[active] for column in vars(self).values()))


def plan_passes(
    documents: Documents, member: NDArray[np.bool_], length: int, config: ExamplesConfig, passes: int
) -> list[NDArray[np.void]]:
    """The rows of each pass over the documents marked in `member`; a random B comes from those documents too."""
    starts = np.concatenate([[0], np.cumsum(documents.sentences, dtype=np.int64)])
    bounds = documents.documents.astype(np.int64)
    first, last = bounds[:-1][member], bounds[1:][member]
    hashes = documents.hashes[member]
    keys = np.concatenate([fold(key(config.seed, "plan", number), hashes) for number in range(passes)])
    budget = length - (3 if config.next_sentence else 2)
    short = uniform(keys, SHORT) < config.short_seq_prob
    target = np.where(short, 2 + below(keys, TARGET, budget - 1), budget)
    own = np.tile(np.arange(len(first)), passes)
    walkers = _Walkers(np.arange(len(keys)), keys, own, target, first[own], last[own])
    if config.next_sentence:
        chunks = list(_pairs(walkers, starts, first, last, config))
    else:
        walkers.at, walkers.end = starts[walkers.at], starts[walkers.end]
        chunks = list(_segments(walkers, starts, budget))
    if not chunks:
        return [np.zeros(0, ROW) for _ in range(passes)]
    number = np.concatenate([chunk[0] for chunk in chunks])
    order = np.argsort(number, kind="stable")  # document after document, so that blocks of rows are near in the store
    rows = np.concatenate([chunk[1] for chunk in chunks])[order]
    cuts = np.searchsorted(number[order], len(first) * np.arange(1, passes))
    return np.split(rows, cuts)


def _pairs(
    walkers: _Walkers, starts: Indices, first: Indices, last: Indices, config: ExamplesConfig
) -> Iterator[tuple[Indices, NDArray[np.void]]]:
    chunk = 0
    while len((walkers := walkers.unfinished()).number):
        chunk += 1
        w, counter = walkers, SLOTS * chunk
        end = np.minimum(np.searchsorted(starts, starts[w.at] + w.target), w.end)
        sentences = end - w.at
        middle = w.at + np.where(sentences > 1, 1 + below(w.key, counter + SPLIT, np.maximum(sentences - 1, 1)), 1)
        elsewhere = (sentences == 1) | (uniform(w.key, counter + COIN) < config.random_next_prob)
        b_first, b_end, is_random = middle.copy(), end.copy(), np.zeros(len(end), np.bool_)
        r = np.flatnonzero(elsewhere)
        document = _another_document(w.key[r], counter, w.own[r], len(first))
        is_random[r] = (document != w.own[r]) if config.random_label == "nvidia" else True
        b_first[r] = first[document] + below(w.key[r], counter + START, last[document] - first[document])
        wanted = np.maximum(w.target[r] - (starts[middle[r]] - starts[w.at[r]]), 1)
        b_end[r] = np.minimum(np.searchsorted(starts, starts[b_first[r]] + wanted), last[document])
        yield w.number, _rows(starts[w.at], starts[middle], starts[b_first], starts[b_end], is_random)
        w.at = np.where(elsewhere, middle, end)


def _another_document(keys: Keys, counter: int, own: Indices, documents: int) -> Indices:
    """A uniform document that is not the own one, or the last of `TRIES` draws if all of them were."""
    document = below(keys, counter + TRY, documents)
    for number in range(1, TRIES):
        again = np.flatnonzero(document == own)
        if not again.size:
            break
        document[again] = below(keys[again], counter + TRY + number, documents)
    return document


def _segments(walkers: _Walkers, starts: Indices, budget: int) -> Iterator[tuple[Indices, NDArray[np.void]]]:
    while len((walkers := walkers.unfinished()).number):
        w = walkers
        whole = starts[np.searchsorted(starts, w.at + w.target, side="right") - 1]
        one_sentence = starts[np.searchsorted(starts, w.at, side="right")]
        end = np.where(whole > w.at, whole, np.minimum(one_sentence, w.at + budget))
        end = np.minimum(end, w.end)
        yield w.number, _rows(w.at, end, end, end, False)
        w.at = end


def _rows(a: Indices, a_end: Indices, b: Indices, b_end: Indices, is_random: ArrayLike) -> NDArray[np.void]:
    rows = np.empty(len(a), ROW)
    most = np.iinfo(np.uint16).max
    rows["a_start"], rows["a_count"] = a, np.minimum(a_end - a, most)
    rows["b_start"], rows["b_count"] = b, np.minimum(b_end - b, most)
    rows["is_random"] = is_random
    return rows
