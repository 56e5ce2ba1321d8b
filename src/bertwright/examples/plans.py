"""Plans: the rows of one set in an examples artifact, their statistics, and checks of them.

    plans/train/128/00.rows     the rows of pass 0 (dtype `ROW`), in shard order
    plans/train/128.json        number of rows of each shard, for each pass

A matching hash proves only that a file is unchanged since it was written. A row that reaches beyond its shard would
silently yield other text, so rows are checked against the store before they are used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_typed
from bertwright.core.shapes import Count
from bertwright.examples.config import PlanSet
from bertwright.examples.documents import documents_inside, followed_by
from bertwright.examples.store import Split, Store, map_file

ROW = np.dtype([
    ("a_start", "<u4"), ("b_start", "<u4"), ("a_count", "<u2"), ("b_count", "<u2"), ("breaks", "<u2"), ("label", "u1"),
])  # fmt: skip
"""One example: the start of its segments in the shard's tokens, their token counts before truncation (at most 65,535;
without a second segment `b_count` is 0), the number of documents that begin inside A, and the label of a pair. A
continues in the next document of the document range, so documents outside the range are skipped."""
UNLABELLED = 2
"""Label of a held-out pair without one: it was imported, the plan has no pairs, or there is only one document."""


@dataclass(frozen=True)
class Plans:
    """The rows of a plan set, by pass."""

    rows: list[NDArray[np.void]]
    """[N] `ROW` for each pass, in shard order."""
    shard_rows: NDArray[np.int64]
    """[passes, shards] number of rows of each shard."""

    @classmethod
    def open(cls, examples: Artifact, plan_set: PlanSet, split: Split = "train", within: str = "") -> Plans:
        """Open the plans built for `plan_set`; `within` as for `Store.open`.

        Raises `ArtifactError` if they are missing or their sizes do not match.
        """
        folder = f"{within}plans/{split}/{plan_set.name}"
        if f"{folder}.json" not in examples.names():
            names = ", ".join(examples.counts[split]["rows"])
            raise ArtifactError(
                f"{examples.path} has no {split} plans {plan_set.name!r}, only {names}. Run the stage examples again."
            )
        shard_rows = np.array(_rows(examples.file(f"{folder}.json")), np.int64)
        files = [examples.file(f"{folder}/{number:02}.rows") for number in range(len(shard_rows))]
        rows = [map_file(file, ROW) for file in files]
        # A truncated file would silently train on fewer rows.
        if [len(of_pass) for of_pass in rows] != shard_rows.sum(axis=1).tolist():
            raise ArtifactError(
                f"the plans in {examples.path / folder} have different numbers of rows than {folder}.json records. "
                "Run the stage examples again."
            )
        return cls(rows, shard_rows)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """[passes] number of rows of each pass."""
        sizes: NDArray[np.int64] = self.shard_rows.sum(axis=1)
        return sizes

    @cached_property
    def shard_ends(self) -> NDArray[np.int64]:
        """[passes, shards] one after each shard's last row, for each pass."""
        return np.cumsum(self.shard_rows, axis=1)


class _Facts(TypedDict):
    rows: list[list[Count]]


def _rows(path: Path) -> list[list[int]]:
    """Rows of each shard, for each pass; `ArtifactError` if passes differ in the number of shards."""
    rows = read_typed(path, TypeAdapter(_Facts))["rows"]
    if len({len(of_pass) for of_pass in rows}) != 1:
        raise ArtifactError(f"{path} lists different shards in each pass. Run the stage examples again.")
    return rows


BINS = 20
"""Number of equally wide histogram bins for sequence lengths, from 1 to the maximum."""

Indices = NDArray[np.int64]


def rows(
    a: Indices, a_end: Indices, b: Indices, b_end: Indices, label: ArrayLike = 0, document_breaks: ArrayLike = 0
) -> NDArray[np.void]:
    """[R] `ROW` of the token ranges [a, a_end) and [b, b_end), each [R]; label and breaks are [R], or one for all."""
    plan_rows = np.empty(len(a), ROW)
    most = np.iinfo(np.uint16).max
    # Clamping to 16 bits loses nothing: no example is that long, so the excess would be truncated anyway.
    plan_rows["a_start"], plan_rows["a_count"] = a, np.minimum(a_end - a, most)
    plan_rows["b_start"], plan_rows["b_count"] = b, np.minimum(b_end - b, most)
    plan_rows["label"], plan_rows["breaks"] = label, document_breaks
    return plan_rows


class PlanStatistics:
    """Statistics over the rows of all passes of a plan."""

    def __init__(self, length: int) -> None:
        """`length` is the maximum length of an example, special tokens included (tokens)."""
        self._length = length
        self._lengths = np.zeros(length + 1, np.int64)
        self._pairs = self._labelled = 0

    def add(self, rows: NDArray[np.void]) -> None:
        """Add rows, [R] `plans.ROW`, to the counts."""
        paired = rows["b_count"] > 0
        # Widened first: sums of 16-bit counts would overflow.
        lengths = rows["a_count"].astype(np.int64) + rows["b_count"] + rows["breaks"] + 2 + paired
        self._lengths += np.bincount(np.minimum(lengths, self._length), minlength=self._length + 1)
        labels = rows["label"][paired & (rows["label"] != UNLABELLED)]
        self._pairs += len(labels)
        self._labelled += int(labels.sum())

    def counts(self) -> dict[str, Any]:
        """`length_counts`, and `label_share`, the share of labelled pairs whose second segment is random (with sentence
        order: swapped), or None without pairs."""
        share = round(self._labelled / self._pairs, 4) if self._pairs else None
        return {**length_counts(self._lengths), "label_share": share}


def length_counts(numbers: Indices) -> dict[str, Any]:
    """Statistics of examples, `numbers` [maximum length + 1] of each length: `lengths`, a histogram with `BINS` bins;
    `mean_length`, `deviation` (the standard deviation) and `longest` in tokens."""
    lengths, total = np.arange(len(numbers)), max(int(numbers.sum()), 1)
    bins = np.bincount(np.maximum(lengths - 1, 0) * BINS // (len(numbers) - 1), numbers, BINS).astype(np.int64)
    mean, square = (float(numbers @ lengths**power) / total for power in (1, 2))
    return {
        "lengths": bins.tolist(),
        "mean_length": round(mean, 2),
        "deviation": round(math.sqrt(max(0.0, square - mean**2)), 2),
        "longest": int(lengths[numbers > 0].max(initial=0)),
    }


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
