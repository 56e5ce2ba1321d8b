"""Who gets which rows of a global step: a function of the lengths alone, so every rank computes the same answer.

Examples of similar length share a micro-batch: length buckets, formed anew within every step. Or they are packed: best
fit, longest first (Johnson 1973), fills rows of a fixed number of tokens, decided within the step as well, where Krell
et al. 2021 pack a whole data set beforehand. Whatever is done, a step holds the same examples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertwright.examples.config import MicroBatching

Ids = NDArray[np.int64]


class Assignment(NamedTuple):
    """One micro-batch: its examples, row after row, and how many of them each row holds."""

    examples: Ids
    """[B] which of the step's examples."""
    row_sizes: Ids
    """[R] examples of each row."""


def assign_to_ranks(lengths: Ids, rank: int, world: int, batching: MicroBatching) -> list[Assignment]:
    """The micro-batches of `rank` in a step of examples of `lengths` [N]; as many on all ranks, any may be empty."""
    if not 0 <= rank < world or batching.micro_batch < 1:
        given = f"rank={rank}, world={world}, micro_batch={batching.micro_batch}"
        raise ValueError(f"{given}: need 0 <= rank < world and micro_batch >= 1")
    room = batching.micro_tokens or batching.row_tokens
    if not room:
        return [
            Assignment(items, np.ones_like(items)) for items in _of_rank(lengths, rank, world, batching.micro_batch)
        ]
    bins = pack(lengths, room)
    filled = np.bincount(bins, weights=lengths).astype(np.int64)
    members = np.split(np.argsort(bins, kind="stable"), np.cumsum(np.bincount(bins))[:-1])
    assignments = []
    # A bin of `micro_tokens` is a micro-batch by itself; one of `row_tokens` is a row of it.
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
    """[N] the bin of each length [N]: longest first, each into the fullest bin that has room for it, else a new one."""
    bins, count = np.zeros(len(lengths), np.int64), 0
    by_room: dict[int, list[int]] = {}
    open_rooms = 0  # bit r: some bin has room for just r more
    for i in np.argsort(-lengths, kind="stable").tolist():
        length = int(lengths[i])
        # An integer as a set of rooms: its lowest bit is the best fit, found without a search.
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

    Sorted by size, largest first, they are handed out to and fro (0 1 2, 2 1 0, ...): token counts come out nearly
    equal, and numbers of items differ by at most one. Each rank cuts its items, still sorted, into the same number of
    micro-batches of equal size (within one), so similar sizes meet.
    """
    # Stable: every rank must find the same order of equal sizes.
    order = np.argsort(-sizes, kind="stable")
    lap, place = np.divmod(np.arange(len(order)), world)
    items = order[np.where(lap % 2, world - 1 - place, place) == rank]
    # Of the rank with most: one with fewer micro-batches would leave the others waiting for its gradients.
    most = -(-len(sizes) // world)
    return np.array_split(items, max(1, -(-most // micro_batch)))
