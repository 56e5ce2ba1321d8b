"""Finished examples from any source: N examples, concatenated without padding.

In memory they are `Instances`: training reads imported examples as these, and the formats read and write them. In the
examples artifact they are flat arrays that can be memory-mapped:

    imported/0/tokens                 ids as stored (after masking if masks are static), of the same dtype as the store
    imported/0/cu_seqlens             uint64 [N + 1] boundaries of the examples
    imported/0/second                 uint16 [N] position where segment 1 begins; the length if there is one segment
    imported/0/positions              uint16 predicted positions inside each example
    imported/0/labels                 original ids at these positions, of the same dtype as tokens
    imported/0/cu_predictions         uint64 [N + 1] boundaries of each example's predictions
    imported/0/next_sentence_labels   int8 [N] 1 random, 0 next, -1 no label
    imported/0/facts.json             what was read, and what was skipped

`0` is the number of the phase. Loading them requires only this module, not the formats they were imported from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.examples.store import token_dtype

Ints = NDArray[np.int64]
ENDS = {"cu_seqlens": "lengths", "cu_predictions": "predictions"}
"""The cumulative sums of the artifact, and the column of the parts that each is computed from."""


@dataclass(frozen=True)
class Instances:
    """N examples of T tokens with M predictions (none if masks are drawn during training)."""

    token_ids: NDArray[np.int32]
    """[T] ids as stored: after masking if masks are static."""
    cu_seqlens: NDArray[np.int64]
    """[N + 1] boundaries of the examples."""
    second: NDArray[np.int32]
    """[N] position where segment 1 begins; the length of the example if there is one segment."""
    positions: NDArray[np.int32]
    """[M] predicted positions, increasing inside each example, never 0 ([CLS])."""
    labels: NDArray[np.int32]
    """[M] original ids at these positions."""
    cu_predictions: NDArray[np.int64]
    """[N + 1] boundaries of each example's predictions."""
    next_sentence_labels: NDArray[np.int8]
    """[N] 1 random, 0 next, -1 no label."""

    def __len__(self) -> int:
        return len(self.second)

    @property
    def lengths(self) -> Ints:
        """[N] tokens of each example."""
        return np.diff(self.cu_seqlens)

    @property
    def predicted(self) -> Ints:
        """[M] indices of the predicted tokens into the T tokens."""
        return np.repeat(self.cu_seqlens[:-1], np.diff(self.cu_predictions)) + self.positions

    @property
    def segment_ids(self) -> NDArray[np.int8]:
        """[T] 0 for the first segment, 1 for the second."""
        return (_inside(self.cu_seqlens) >= np.repeat(self.second, self.lengths)).astype(np.int8)

    def originals(self) -> NDArray[np.int32]:
        """[T] ids before masking."""
        tokens = self.token_ids.copy()
        tokens[self.predicted] = self.labels
        return tokens

    def take(self, rows: slice | Ints) -> Instances:
        """The examples selected by `rows`, a slice or indices [N], in that order."""
        chosen = np.arange(len(self))[rows]
        tokens, cu_seqlens = gather(self.cu_seqlens, chosen)
        predictions, cu_predictions = gather(self.cu_predictions, chosen)
        return Instances(
            self.token_ids[tokens],
            cu_seqlens,
            self.second[chosen],
            self.positions[predictions],
            self.labels[predictions],
            cu_predictions,
            self.next_sentence_labels[chosen],
        )


def dtypes(vocabulary_size: int) -> dict[str, str]:
    """The dtypes of the columns that have the same flat layout in parts and artifact."""
    ids = token_dtype(vocabulary_size)
    return {"tokens": ids, "second": "<u2", "positions": "<u2", "labels": ids, "next_sentence_labels": "i1"}


def concatenate(parts: Sequence[Instances]) -> Instances:
    """The examples of all `parts` (at least one), concatenated."""
    columns: dict[str, NDArray[Any]] = {}
    for field in fields(Instances):
        arrays = [getattr(part, field.name) for part in parts]
        if field.name.startswith("cu_"):
            # Cumulative sums cannot be concatenated: each part begins at 0 again.
            counts = np.concatenate([np.diff(array) for array in arrays])
            columns[field.name] = ends(counts)
        else:
            columns[field.name] = np.concatenate(arrays)
    return Instances(**columns)


def ends(counts: NDArray[Any] | Sequence[int]) -> Ints:
    """[N + 1] the cumulative sum of `counts`, starting with 0."""
    # A large corpus has more tokens than 32 bits can count.
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)


def stretches(sizes: Ints, most: int) -> list[tuple[int, int]]:
    """Split rows of these sizes [N] into consecutive ranges [start, stop) that hold about `most` each."""
    stretch = (np.cumsum(sizes) - sizes) // most
    return list(pairwise([*np.flatnonzero(np.diff(stretch, prepend=-1)).tolist(), len(sizes)]))


def gather(cu: NDArray[Any], rows: Ints) -> tuple[Ints, Ints]:
    """Indices to gather `rows` [K] of a ragged array with row boundaries `cu` [N + 1].

    Returns the element indices [T], and the row boundaries among them [K + 1].
    """
    begins = cu[rows].astype(np.int64)
    counts = cu[rows + 1].astype(np.int64) - begins
    cu_taken = ends(counts)
    return np.arange(cu_taken[-1]) + np.repeat(begins - cu_taken[:-1], counts), cu_taken


def _inside(cu: Ints) -> Ints:
    """The position of each element inside its row."""
    return np.arange(cu[-1]) - np.repeat(cu[:-1], np.diff(cu))
