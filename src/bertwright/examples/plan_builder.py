"""Plans are built from a shard's sentence lengths: they say which tokens an example is made of.

All documents and all passes are built in lockstep. Every number is a hash of (seed, pass, text of the document, chunk)
instead of coming from one generator seeded alike for all shards, and documents are not shuffled, because rows are
permuted when drawn. What a chunk becomes is the plan's own rule: `pairs` or `segments`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import fold, key
from bertwright.examples.config import ExamplesConfig
from bertwright.examples.pairs import pairs
from bertwright.examples.plans import ROW
from bertwright.examples.rows import Chunk, PlanBuilder
from bertwright.examples.segments import segments
from bertwright.examples.store import Documents


def plan_passes(
    documents: Documents, member: NDArray[np.bool_], length: int, config: ExamplesConfig, passes: int
) -> list[NDArray[np.void]]:
    """[R] `ROW` for each pass over the documents marked in `member` [D]; a random B comes from those documents too."""
    starts = np.concatenate([[0], np.cumsum(documents.sentences, dtype=np.int64)])
    bounds = documents.documents.astype(np.int64)
    first = np.flatnonzero(member)
    last = first
    if config.plan == "full-sentences":  # documents that follow each other are one stretch
        first, last = first[np.diff(first, prepend=-2) > 1], first[np.diff(first, append=len(member) + 1) > 1]
    keys = [fold(key(config.seed, "plan", number), documents.hashes[first]) for number in range(passes)]
    own = np.tile(np.arange(len(first)), passes)
    first_sentence, end = bounds[first], bounds[last + 1]
    builder = PlanBuilder(np.arange(len(own)), np.concatenate(keys), own, first_sentence[own], end[own])
    if config.pairs:
        chunks = pairs(builder, starts, first_sentence, end, length, config)
    else:
        chunks = segments(builder, starts, bounds, length, config)
    return _by_pass(chunks, len(first), passes)


def _by_pass(chunks: Iterator[Chunk], stretches: int, passes: int) -> list[NDArray[np.void]]:
    """The rows of each pass, document after document, so that blocks of rows are near in the store."""
    found = list(chunks)
    if not found:
        return [np.zeros(0, ROW) for _ in range(passes)]
    number = np.concatenate([numbers for numbers, _ in found])
    order = np.argsort(number, kind="stable")
    cuts = np.searchsorted(number[order], stretches * np.arange(1, passes))
    return np.split(np.concatenate([made for _, made in found], dtype=ROW)[order], cuts)
