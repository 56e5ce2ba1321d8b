"""Plans of labelled pairs: next-sentence prediction and sentence-order prediction.

The greedy rule (Google's create_pretraining_data.py, shared by NVIDIA, MLCommons and Intel): sentences are gathered
until the target length is reached; A takes the first few, uniformly many; B is the rest, or, always for a chunk of one
sentence and else with `random_next_prob`, a stretch of another document, and then the unused sentences are walked
again.

For sentence order (Lan et al. 2020 §3.1, ALBERT) B is always the rest, and the two are swapped with a probability of
one half. A chunk of one sentence has no order: it stands alone and has no label, where ALBERT's script pairs it with a
random segment all the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bertwright.core.rng import below, uniform
from bertwright.examples.config import ExamplesConfig
from bertwright.examples.rows import SHORT, SLOTS, TARGET, Chunk, Indices, Keys, PlanBuilder, rows

TRIES = 10
SPLIT, CHOICE, START, TRY = 0, 1, 2, 3  # counters of a chunk; the tries take ten
SWAPPED = 0.5


def pairs(
    builder: PlanBuilder, starts: Indices, first: Indices, last: Indices, length: int, config: ExamplesConfig
) -> Iterator[Chunk]:
    """The pairs of all stretches, chunk after chunk; `first` and `last` [D] bound the sentences of each document, and
    `starts` [S + 1] the tokens of each sentence."""
    short = uniform(builder.key, SHORT) < config.short_seq_prob
    targets = np.where(short, 2 + below(builder.key, TARGET, length - 4), length - 3)
    chunk = 0
    while len((builder := builder.unfinished()).number):
        chunk += 1
        w, target, counter = builder, targets[builder.number], SLOTS * chunk
        end = np.minimum(np.searchsorted(starts, starts[w.at] + target), w.end)
        sentences = end - w.at
        middle = w.at + np.where(sentences > 1, 1 + below(w.key, counter + SPLIT, np.maximum(sentences - 1, 1)), 1)
        if config.plan == "sentence-order":
            yield w.number, _ordered(starts[w.at], starts[middle], starts[end], uniform(w.key, counter + CHOICE))
            w.at = end
            continue
        elsewhere = (sentences == 1) | (uniform(w.key, counter + CHOICE) < config.random_next_prob)
        b_first, b_end, is_random = middle.copy(), end.copy(), np.zeros(len(end), np.bool_)
        r = np.flatnonzero(elsewhere)
        document = _another_document(w.key[r], counter, w.own[r], len(first))
        is_random[r] = (document != w.own[r]) if config.random_label == "nvidia" else True
        b_first[r] = first[document] + below(w.key[r], counter + START, last[document] - first[document])
        wanted = np.maximum(target[r] - (starts[middle[r]] - starts[w.at[r]]), 1)
        b_end[r] = np.minimum(np.searchsorted(starts, starts[b_first[r]] + wanted), last[document])
        yield w.number, rows(starts[w.at], starts[middle], starts[b_first], starts[b_end], is_random)
        w.at = np.where(elsewhere, middle, end)


def _ordered(a: Indices, middle: Indices, end: Indices, chosen: np.ndarray) -> np.ndarray:
    """A and the rest of its chunk, swapped where a fair Bernoulli draw says so."""
    swapped = (chosen < SWAPPED) & (middle < end)
    first, first_end = np.where(swapped, middle, a), np.where(swapped, end, middle)
    second, second_end = np.where(swapped, a, middle), np.where(swapped, middle, end)
    return rows(first, first_end, second, second_end, swapped)


def _another_document(keys: Keys, counter: int, own: Indices, documents: int) -> Indices:
    """A uniform document that is not the own one, or the last of `TRIES` draws if all of them were."""
    document = below(keys, counter + TRY, documents)
    for number in range(1, TRIES):
        again = np.flatnonzero(document == own)
        if not again.size:
            break
        document[again] = below(keys[again], counter + TRY + number, documents)
    return document
