"""Assigns the rows of a global step to ranks, as a function of the lengths alone, so all ranks compute the same result.

Examples of similar length share a micro-batch: length buckets, formed within each step. Or they are packed: best fit,
longest first (Johnson 1973), fills rows of a fixed number of tokens, also within each step, while Krell et al. 2021
pack a complete dataset in advance. In all cases a step holds the same examples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertwright.examples.config import MicroBatching

Ids = NDArray[np.int64]


class Assignment(NamedTuple):
    """One micro-batch: its examples, ordered by row, and the number of examples in each row."""

    examples: Ids
    """[B] indices into the step's examples."""
    row_sizes: Ids
    """[R] number of examples in each row."""


def assign_to_ranks(lengths: Ids, rank: int, world: int, batching: MicroBatching) -> list[Assignment]:
    """The micro-batches of `rank` in a step with examples of `lengths` [N].

    Every rank has the same number of micro-batches, and any of them may be empty.
    """
    if not 0 <= rank < world or batching.micro_batch < 1:
        given = f"rank={rank}, world={world}, micro_batch={batching.micro_batch}"
        raise ValueError(f"{given}: these must satisfy 0 <= rank < world and micro_batch >= 1")
    room = batching.micro_tokens or batching.row_tokens
    if not room:
        return [
            Assignment(items, np.ones_like(items)) for items in _of_rank(lengths, rank, world, batching.micro_batch)
        ]
    bins = pack(lengths, room)
    filled = np.bincount(bins, weights=lengths).astype(np.int64)
    members = np.split(np.argsort(bins, kind="stable"), np.cumsum(np.bincount(bins))[:-1])
    assignments = []
    # A bin of `micro_tokens` is a complete micro-batch; a bin of `row_tokens` is one row of a micro-batch.
    for items in _of_rank(filled, rank, world, 1 if batching.micro_tokens else batching.micro_batch):
        rows = [members[i] for i in items]
        examples = np.concatenate([np.zeros(0, np.int64), *rows])
        if batching.micro_tokens:
            examples = examples[np.argsort(-lengths[examples], kind="stable")]
            assignments.append(Assignment(examples, np.ones_like(examples)))
        else:
            assignments.append(Assignment(examples, np.array([len(row) for row in rows], np.int64)))
    return assignments


def pack(lengths: Ids, room: int) -> Ids:
    """[N] the bin of each of `lengths` [N]: longest first, each into the fullest bin with room for it, or a new bin."""
    bins, count = np.zeros(len(lengths), np.int64), 0
    by_room: dict[int, list[int]] = {}
    open_rooms = 0  # bit r: some bin has room for exactly r more
    for i in np.argsort(-lengths, kind="stable").tolist():
        # An example of several sequences may exceed the room: it is never divided, and has a bin of its own.
        length = min(int(lengths[i]), room)
        # The integer is a set of remaining capacities: its lowest bit is the best fit, found without a search.
        fitting = open_rooms >> length
        if fitting:
            left = length + (fitting & -fitting).bit_length() - 1
            bins[i] = by_room[left].pop()
            if not by_room[left]:
                open_rooms ^= 1 << left
        else:
            left, bins[i], count = room, count, count + 1
        if left := left - length:
            by_room.setdefault(left, []).append(int(bins[i]))
            open_rooms |= 1 << left
    return bins


def _of_rank(sizes: Ids, rank: int, world: int, micro_batch: int) -> list[Ids]:
    """The items of `rank`, as one index array per micro-batch of at most `micro_batch` items.

    Items are sorted by size, largest first, and dealt to the ranks in snake order (0 1 2, 2 1 0, ...), so token counts
    are nearly equal and item counts differ by at most one. Each rank splits its items, still sorted, into the same
    number of micro-batches of equal size (within one), so items of similar size share a micro-batch.
    """
    # Stable: every rank must compute the same order of equal sizes.
    order = np.argsort(-sizes, kind="stable")
    lap, place = np.divmod(np.arange(len(order)), world)
    items = order[np.where(lap % 2, world - 1 - place, place) == rank]
    # Based on the largest rank: a rank with fewer micro-batches would leave the others waiting for its gradients.
    most = -(-len(sizes) // world)
    return np.array_split(items, max(1, -(-most // micro_batch)))
