"""Checks that plans fit the store that their rows refer to.

A matching hash proves only that a file is unchanged since it was written. A row that reaches beyond its shard would
silently yield other text.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertwright.core.errors import ArtifactError
from bertwright.examples.documents import documents_inside, followed_by
from bertwright.examples.plans import ROW, UNLABELLED, Plans
from bertwright.examples.store import Store

_AT_ONCE = 1 << 18
"""Rows checked at a time."""


def check_plans(plans: Plans, store: Store) -> None:
    """Raise `ArtifactError` if a row refers to tokens outside its shard of `store`, or has an invalid label."""
    room = np.diff(store.shard_tokens)
    for rows, ends in zip(plans.rows, plans.shard_ends, strict=True):
        if not isinstance(rows, np.memmap):  # an empty file is not mapped
            continue
        path = Path(str(rows.filename))
        if len(ends) != len(room):
            raise _unfit(f"{path} has rows of {len(ends):,} shards, but the store has {len(room):,}")
        for first in range(0, len(rows), _AT_ONCE):
            # Read instead of mapped, so that plans do not count as memory of the process.
            some = np.fromfile(path, ROW, _AT_ONCE, offset=first * ROW.itemsize)
            shards = np.searchsorted(ends, np.arange(first, first + len(some)), side="right")
            wrong = _beyond(some, room[shards]) | _breaks_elsewhere(some, store, shards)
            if wrong.any():
                raise _unfit(f"row {first + int(wrong.argmax()):,} of {path} refers to text outside its shard")


def _beyond(rows: NDArray[np.void], room: NDArray[np.int64]) -> NDArray[np.bool_]:
    """[N] whether a segment ends beyond the `room` [N] tokens of its shard, or the label is invalid."""
    wrong: NDArray[np.bool_] = rows["label"] > UNLABELLED
    for segment in "ab":
        # Widened first: 32-bit sums would overflow.
        wrong = wrong | (rows[f"{segment}_start"].astype(np.int64) + rows[f"{segment}_count"] > room)
    return wrong


def _breaks_elsewhere(rows: NDArray[np.void], store: Store, shards: NDArray[np.int64]) -> NDArray[np.bool_]:
    """[N] whether A is not in the documents that begin inside it, by the row; `shards` [N] are those of the rows."""
    broken = np.flatnonzero(rows["breaks"])
    start = rows["a_start"][broken].astype(np.int64) + store.shard_tokens[shards[broken]]
    count, breaks = rows["a_count"][broken].astype(np.int64), rows["breaks"][broken].astype(np.int64)
    wrong = np.zeros(len(rows), np.bool_)
    wrong[broken] = lacking = followed_by(store, start) < breaks
    there = np.flatnonzero(~lacking)
    inside = documents_inside(store, start[there], count[there], breaks[there])
    last = np.cumsum(breaks[there]) - 1
    starts, stops = inside.starts[last], inside.starts[last] + inside.sizes[last]
    ends = store.starts[np.searchsorted(store.starts, starts.astype(np.uint64), side="right")].astype(np.int64)
    elsewhere = (stops <= starts) | (stops > ends) | (ends > store.shard_tokens[shards[broken[there]] + 1])
    wrong[broken[there]] = elsewhere
    return wrong


def _unfit(what: str) -> ArtifactError:
    return ArtifactError(f"{what}. Run the stage examples again.")
