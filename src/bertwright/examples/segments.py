"""Plans without pairs: as many consecutive sentences as fit (Liu et al. 2019 §4.2, RoBERTa).

`doc-sentences` end with their document; with `short_seq_prob` all of a document's rows are shorter. `full-sentences` go
on in the next document of the shard after a [SEP]; with `short_seq_prob` a row is shorter, and the first row of each
pass always may be, so that the rows of two passes are cut at different places. A sentence longer than an
example is continued in the next row.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bertwright.core.rng import below, uniform
from bertwright.examples.config import ExamplesConfig
from bertwright.examples.rows import SHORT, SLOTS, TARGET, Chunk, Indices, PlanBuilder, rows


def segments(
    builder: PlanBuilder, starts: Indices, bounds: Indices, length: int, config: ExamplesConfig
) -> Iterator[Chunk]:
    """The segments of all stretches, chunk after chunk; `bounds` [D + 1] are the documents' first sentences and their
    number, `starts` [S + 1] the sentences' first tokens and their number."""
    budget, full = length - 2, config.plan == "full-sentences"
    # How many documents begin before each sentence: each costs a [SEP] in a row that began before it.
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
    """The sentence each token is in."""
    return np.searchsorted(starts, token, side="right") - 1
