"""Who gets which rows of a global step: a function of the lengths alone, so every rank computes the same answer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def deal(lengths: NDArray[np.int64], rank: int, world: int, micro_batch: int) -> list[NDArray[np.int64]]:
    """The rows of `rank`, as one index array per micro-batch of at most `micro_batch` rows.

    Rows sorted by length, longest first, are dealt to and fro (0 1 2, 2 1 0, ...): token counts come out nearly
    equal, and numbers of rows differ by at most one. Each rank cuts its rows, still sorted, into the same number of
    micro-batches of equal size (within one), so similar lengths meet. A rank with fewer rows than micro-batches gets
    empty ones.
    """
    if not 0 <= rank < world or micro_batch < 1:
        given = f"rank={rank}, world={world}, micro_batch={micro_batch}"
        raise ValueError(f"{given}: need 0 <= rank < world and micro_batch >= 1")
    order = np.argsort(-lengths, kind="stable")
    turn, seat = np.divmod(np.arange(len(order)), world)
    mine = order[np.where(turn % 2, world - 1 - seat, seat) == rank]
    return np.array_split(mine, micro_batches(len(lengths), world, micro_batch))


def micro_batches(rows: int, world: int, micro_batch: int) -> int:
    """Micro-batches of every rank in a global step of `rows`."""
    most = -(-rows // world)
    return max(1, -(-most // micro_batch))
