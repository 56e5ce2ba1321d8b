"""Rows of a plan: building them from token ranges, and counting them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertwright.examples.plans import ROW, UNLABELLED

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


class Tally:
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
