"""Finished examples, wherever they came from: N of them, one after another, without padding.

In memory they are `Instances`: training reads what was brought in as these, and the formats read and write them. In the
examples artifact they are flat arrays that can be mapped:

    imported/0/tokens                 ids as stored (after masking, where masks are static), as wide as the store's
    imported/0/cu_seqlens             uint64 [N + 1] where examples begin and end
    imported/0/second                 uint16 [N] position where segment 1 begins; the length where there is one segment
    imported/0/positions              uint16 predicted positions inside each example
    imported/0/labels                 original ids there, as wide as tokens
    imported/0/cu_predictions         uint64 [N + 1] where the predictions of an example begin and end
    imported/0/next_sentence_labels   int8 [N] 1 random, 0 next, -1 no label
    imported/0/facts.json             what was read, and what was left out

`0` is the number of the phase. Whoever draws from them needs this page and none of the formats they came in.
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
"""The running sums of the artifact, and the column of the parts that each is made of."""


@dataclass(frozen=True)
class Instances:
    """N examples of T tokens with M predictions (none where masks are drawn while training)."""

    token_ids: NDArray[np.int32]
    """[T] ids as stored: after masking where masks are static."""
    cu_seqlens: NDArray[np.int64]
    """[N + 1] where examples begin and end."""
    second: NDArray[np.int32]
    """[N] position where segment 1 begins; the length of the example where there is one segment."""
    positions: NDArray[np.int32]
    """[M] predicted positions, rising inside each example, never 0 ([CLS])."""
    labels: NDArray[np.int32]
    """[M] original ids there."""
    cu_predictions: NDArray[np.int64]
    """[N + 1] where the predictions of an example begin and end."""
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
        """[M] indices of the predicted tokens among the T."""
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
        """The examples `rows`, a slice or their numbers [N], in that order."""
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
    """The element types of the columns that are flat in parts and artifact alike."""
    ids = token_dtype(vocabulary_size)
    return {"tokens": ids, "second": "<u2", "positions": "<u2", "labels": ids, "next_sentence_labels": "i1"}


def concatenate(parts: Sequence[Instances]) -> Instances:
    """All examples of `parts` (at least one), one after another."""
    columns: dict[str, NDArray[Any]] = {}
    for field in fields(Instances):
        arrays = [getattr(part, field.name) for part in parts]
        if field.name.startswith("cu_"):
            # Running sums cannot be put behind each other: each part begins from 0 again.
            counts = np.concatenate([np.diff(array) for array in arrays])
            columns[field.name] = ends(counts)
        else:
            columns[field.name] = np.concatenate(arrays)
    return Instances(**columns)


def ends(counts: NDArray[Any] | Sequence[int]) -> Ints:
    """[N + 1] the running sum of `counts`, from 0."""
    # The tokens of a large corpus are more than 32 bits count.
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)


def stretches(sizes: Ints, most: int) -> list[tuple[int, int]]:
    """Stretches [start, stop) of rows of these sizes [N] that hold about `most` together, all rows in order."""
    stretch = (np.cumsum(sizes) - sizes) // most
    return list(pairwise([*np.flatnonzero(np.diff(stretch, prepend=-1)).tolist(), len(sizes)]))


def gather(cu: NDArray[Any], rows: Ints) -> tuple[Ints, Ints]:
    """[T] which elements of a ragged array, whose rows end at `cu` [N + 1], are those of `rows` [K]; and [K + 1] where
    the rows begin and end among them."""
    begins = cu[rows].astype(np.int64)
    counts = cu[rows + 1].astype(np.int64) - begins
    cu_taken = ends(counts)
    return np.arange(cu_taken[-1]) + np.repeat(begins - cu_taken[:-1], counts), cu_taken


def _inside(cu: Ints) -> Ints:
    """The position of each element inside its row."""
    return np.arange(cu[-1]) - np.repeat(cu[:-1], np.diff(cu))
