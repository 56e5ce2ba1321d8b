"""Builds plans from a shard's sentence lengths: a plan specifies which tokens form each example.

All documents and all passes are built in lockstep. Every random number is a hash of (seed, pass, text of the document,
chunk) instead of coming from one generator with the same seed for all shards, and documents are not shuffled, because
rows are permuted when they are loaded.

*Pairs for next-sentence prediction*, the greedy rule (Google's create_pretraining_data.py, shared by NVIDIA, MLCommons
and Intel): sentences are collected until the target length is reached; A takes a uniformly random number of the first
ones; B is the rest, or, always for a chunk of one sentence and otherwise with `random_next_prob`, a range of another
document, in which case the unused sentences are used again.

*Pairs for sentence order* (Lan et al. 2020 §3.1, ALBERT): B is always the rest, and the two are swapped with a
probability of one half. A chunk of one sentence has no order: it becomes a single unlabelled segment, whereas ALBERT's
script pairs it with a random segment.

*Segments without pairs* (Liu et al. 2019 §4.2, RoBERTa): as many consecutive sentences as fit. `doc-sentences` end with
their document; with `short_seq_prob` all of a document's rows are shorter. `full-sentences` continue in the next
document of the shard after a [SEP], without those outside the document range of the phase; with `short_seq_prob` a row
is shorter, and the first row of a shard always draws a shorter target, so that the rows of two passes are cut at
different positions. A sentence longer than an example continues in the next row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import below, fold, key, uniform
from bertwright.examples.config import ExamplesConfig
from bertwright.examples.documents import subset
from bertwright.examples.plans import ROW, Indices, rows
from bertwright.examples.store import Documents

SLOTS = 16
"""Random-number counters per chunk; chunk 0 has those of the document itself."""
SHORT, TARGET = 0, 1
TRIES = 10
SPLIT, CHOICE, START, TRY = 0, 1, 2, 3  # counters within a chunk; the tries take ten, from `TRY` on
SWAPPED = 0.5

Keys = NDArray[np.uint64]
Chunk = tuple[Indices, NDArray[np.void]]
"""The (pass, stretch) number of each row, and the rows."""


@dataclass
class PlanBuilder:
    """Progress of W (pass, stretch of sentences) combinations, all at the same chunk number."""

    number: Indices
    """[W] index of the (pass, stretch) among all of them."""
    key: Keys
    """[W] key of its random decisions."""
    own: Indices
    """[W] index of the stretch within its pass."""
    at: Indices
    """[W] the next sentence (pairs) or token (segments)."""
    end: Indices
    """[W] the end of the stretch: one after its last sentence or token."""

    def unfinished(self) -> PlanBuilder:
        """The ones that have not reached their end."""
        active = np.flatnonzero(self.at < self.end)
        return PlanBuilder(*(column[active] for column in vars(self).values()))


def plan_passes(
    documents: Documents, member: NDArray[np.bool_], length: int, config: ExamplesConfig, passes: int
) -> list[NDArray[np.void]]:
    """[R] `ROW` for each pass over the documents selected by `member` [D]; random segments come from these as well."""
    if config.plan == "full-sentences" and not member.all():
        return _as_if_alone(documents, member, length, config, passes)
    starts = np.concatenate([[0], np.cumsum(documents.sentences, dtype=np.int64)])
    bounds = documents.documents.astype(np.int64)
    first = np.flatnonzero(member)
    # All documents form one stretch of full sentences.
    first, last = (first[:1], first[-1:]) if config.plan == "full-sentences" else (first, first)
    # Keyed by the document's text, so that it is cut the same way in any shard and in the next dump.
    keys = [fold(key(config.seed, "plan", number), documents.hashes[first]) for number in range(passes)]
    own = np.tile(np.arange(len(first)), passes)
    first_sentence, end = bounds[first], bounds[last + 1]
    builder = PlanBuilder(np.arange(len(own)), np.concatenate(keys), own, first_sentence[own], end[own])
    if config.pairs:
        chunks = _pairs(builder, starts, first_sentence, end, length, config)
    else:
        chunks = _segments(builder, starts, bounds, length, config)
    return _by_pass(chunks, len(first), passes)


def _as_if_alone(
    documents: Documents, member: NDArray[np.bool_], length: int, config: ExamplesConfig, passes: int
) -> list[NDArray[np.void]]:
    """The plans of the selected documents as if there were no others, so that rows continue from one to the next."""
    alone = subset(replace(documents, tokens=documents.tokens[:0]), member)
    starts, moved = alone.token_starts()[:-1], documents.token_starts()[:-1][member]
    plans = plan_passes(alone, np.ones(len(moved), np.bool_), length, config, passes)
    for plan in plans:
        document = np.searchsorted(starts, plan["a_start"], side="right") - 1
        plan["a_start"] += (moved - starts).astype(np.uint32)[document]
        plan["b_start"] = plan["a_start"]
    return plans


def _by_pass(chunks: Iterator[Chunk], stretches: int, passes: int) -> list[NDArray[np.void]]:
    """The rows of each pass in document order, so that the tokens of consecutive rows are close in the store."""
    built = list(chunks)
    if not built:
        return [np.zeros(0, ROW) for _ in range(passes)]
    number = np.concatenate([numbers for numbers, _ in built])
    order = np.argsort(number, kind="stable")
    cuts = np.searchsorted(number[order], stretches * np.arange(1, passes))
    return np.split(np.concatenate([chunk_rows for _, chunk_rows in built], dtype=ROW)[order], cuts)


def _pairs(
    builder: PlanBuilder, starts: Indices, first: Indices, last: Indices, length: int, config: ExamplesConfig
) -> Iterator[Chunk]:
    """Yield the pairs of all stretches, chunk by chunk; `first` and `last` [D] delimit the sentences of each document,
    and `starts` [S + 1] the tokens of each sentence."""
    short = uniform(builder.key, SHORT) < config.short_seq_prob
    # Uniform from 2 to length - 3, drawn once per document, as in the originals.
    targets = np.where(short, 2 + below(builder.key, TARGET, length - 4), length - 3)
    chunk = 0
    while len((builder := builder.unfinished()).number):
        chunk += 1
        w, target, counter = builder, targets[builder.number], SLOTS * chunk
        # The sentence that reaches the target belongs to the chunk; it is truncated when the row is loaded.
        end = np.minimum(np.searchsorted(starts, starts[w.at] + target), w.end)
        sentences = end - w.at
        middle = w.at + np.where(sentences > 1, 1 + below(w.key, counter + SPLIT, np.maximum(sentences - 1, 1)), 1)
        if config.plan == "sentence-order":
            yield w.number, _ordered(starts[w.at], starts[middle], starts[end], uniform(w.key, counter + CHOICE))
            w.at = end
            continue
        # A chunk of one sentence has no second half, so more than the requested share of pairs is random.
        elsewhere = (sentences == 1) | (uniform(w.key, counter + CHOICE) < config.random_next_prob)
        b_first, b_end, is_random = middle.copy(), end.copy(), np.zeros(len(end), np.bool_)
        r = np.flatnonzero(elsewhere)
        document = _another_document(w.key[r], counter, w.own[r], len(first))
        # After ten failed tries NVIDIA and LDDL label the pair not random, Google and MLCommons random.
        is_random[r] = (document != w.own[r]) if config.random_label == "nvidia" else True
        b_first[r] = first[document] + below(w.key[r], counter + START, last[document] - first[document])
        wanted = np.maximum(target[r] - (starts[middle[r]] - starts[w.at[r]]), 1)
        b_end[r] = np.minimum(np.searchsorted(starts, starts[b_first[r]] + wanted), last[document])
        yield w.number, rows(starts[w.at], starts[middle], starts[b_first], starts[b_end], is_random)
        # Sentences that a random B replaced are used again: the originals put them back.
        w.at = np.where(elsewhere, middle, end)


def _ordered(a: Indices, middle: Indices, end: Indices, chosen: np.ndarray) -> np.ndarray:
    """Rows of A and the rest of its chunk, swapped by a fair Bernoulli draw."""
    swapped = (chosen < SWAPPED) & (middle < end)
    first, first_end = np.where(swapped, middle, a), np.where(swapped, end, middle)
    second, second_end = np.where(swapped, a, middle), np.where(swapped, middle, end)
    return rows(first, first_end, second, second_end, swapped)


def _another_document(keys: Keys, counter: int, own: Indices, documents: int) -> Indices:
    """A uniformly drawn document other than `own`; after `TRIES` draws of `own`, the last draw is returned."""
    document = below(keys, counter + TRY, documents)
    for number in range(1, TRIES):
        again = np.flatnonzero(document == own)
        if not again.size:
            break
        document[again] = below(keys[again], counter + TRY + number, documents)
    return document


def _segments(
    builder: PlanBuilder, starts: Indices, bounds: Indices, length: int, config: ExamplesConfig
) -> Iterator[Chunk]:
    """Yield the segments of all stretches, chunk by chunk; `bounds` [D + 1] are the first sentence of each document and
    the number of sentences, `starts` [S + 1] the first token of each sentence and the number of tokens."""
    budget, full = length - 2, config.plan == "full-sentences"
    # The number of documents that begin before each sentence: each costs a [SEP] in a row that began before it.
    begun = np.searchsorted(bounds[:-1], np.arange(len(starts)), side="left") * full
    cost = starts + begun
    builder.at, builder.end = starts[builder.at], starts[builder.end]
    chunk = 0
    while len((builder := builder.unfinished()).number):
        w, counter = builder, SLOTS * chunk * full
        short = uniform(w.key, counter + SHORT) < (config.short_seq_prob if chunk or not full else 1.0)
        target = np.where(short, 2 + below(w.key, counter + TARGET, budget - 1), budget)
        before = begun[_sentence(starts, w.at) + 1]
        whole = starts[np.searchsorted(cost, w.at + before + target, side="right") - 1]
        one_sentence = starts[_sentence(starts, w.at) + 1]
        end = np.where(whole > w.at, whole, np.minimum(one_sentence, w.at + budget))
        end = np.minimum(end, w.end)
        yield w.number, rows(w.at, end, end, end, document_breaks=begun[_sentence(starts, end - 1) + 1] - before)
        w.at = end
        chunk += 1


def _sentence(starts: Indices, token: Indices) -> Indices:
    """The sentence that contains each token."""
    return np.searchsorted(starts, token, side="right") - 1
