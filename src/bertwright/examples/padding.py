"""Pads batches to a small number of shapes, for code that is compiled for each shape.

Padding has weight 0, as the contract of `Batch` requires, so it does not change the loss or the counts. Names carry
shapes: B sequences, T tokens of all sequences together, P predictions, R rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.examples.batch import MicroBatch

_OF_TOKENS = ("token_ids", "position_ids", "segment_ids")
_OF_PREDICTIONS = ("prediction_positions", "labels", "weights")
_OF_SEQUENCES = ("sequence_labels", "sequence_weights")


def with_room(batch: MicroBatch, tokens: int, predictions: int) -> MicroBatch:
    """The batch, padded to `tokens` tokens and `predictions` predictions of which the padding has weight 0.

    Padding tokens form sequences of weight 0, each in a separate row no longer than the longest existing row, so that a
    rectangular layout of the rows does not get wider; padding predictions have position 0.
    """
    _, length, predicted = batch.counts
    more, further = tokens - length, predictions - predicted
    assert more >= 0 and further >= 0
    ends = np.minimum(np.arange(length, tokens, max(batch.max_row, 1)) + max(batch.max_row, 1), tokens)
    grown = dict[str, NDArray[Any]]()
    for names, size in ((_OF_TOKENS, more), (_OF_PREDICTIONS, further), (_OF_SEQUENCES, len(ends))):
        for name in names:
            grown[name] = _padded(getattr(batch, name), size)
    for name in ("cu_seqlens", "cu_rows"):
        bounds = getattr(batch, name)
        grown[name] = np.concatenate([bounds, ends.astype(bounds.dtype)])
    return replace(batch, max_row=max(batch.max_row, min(more, 1)), **grown)


@dataclass(frozen=True)
class Room:
    """The shape of every forward pass of a phase with fixed shapes."""

    rows: int
    """Rows: sequences, or with packing rows of several sequences."""
    length: int
    """Tokens per row."""
    sequences: int
    """Sequences, including those that fill up rows."""
    predictions: int
    """Predictions."""


def in_rows(batch: MicroBatch, room: Room) -> MicroBatch:
    """The batch with every row padded to `room.length` tokens, and padding rows added up to `room.rows`.

    T and R are then the same for every batch, and so are B (filled up with sequences of length 0 at the end) and P,
    unless the batch has more of them than the room: then it gets the smallest multiple of the room's. Padding has
    weight 0.
    """
    lengths_R = np.diff(batch.cu_rows)
    assert len(lengths_R) <= room.rows and batch.max_row <= room.length
    total = room.rows * room.length
    row_T = np.repeat(np.arange(len(lengths_R)), lengths_R)
    moved_T = np.arange(len(row_T)) + (room.length * row_T - batch.cu_rows[:-1][row_T])
    grown = dict[str, NDArray[Any]]()
    for name in _OF_TOKENS:
        array = getattr(batch, name)
        grown[name] = np.zeros(total, array.dtype)
        grown[name][moved_T] = array
    # A sequence ends one after its last token; the padding of a row, if any, is a sequence that ends with the row.
    ends_B = np.where(np.diff(batch.cu_seqlens) > 0, moved_T[np.maximum(batch.cu_seqlens[1:], 1) - 1] + 1, 0)
    lengths = np.concatenate([lengths_R, np.zeros(room.rows - len(lengths_R), lengths_R.dtype)])
    padded_R = (np.flatnonzero(lengths < room.length) + 1) * room.length
    ends = np.concatenate([ends_B, padded_R])
    order, sequences = np.argsort(ends, kind="stable"), _rounded(len(ends), room.sequences)
    bounds = np.concatenate([[0], ends[order], np.full(sequences - len(ends), total)])
    grown["cu_seqlens"] = bounds.astype(batch.cu_seqlens.dtype)
    grown["cu_rows"] = (np.arange(room.rows + 1) * room.length).astype(batch.cu_rows.dtype)
    for name in _OF_SEQUENCES:
        grown[name] = _padded(_padded(getattr(batch, name), len(padded_R))[order], sequences - len(ends))
    more = _rounded(len(batch.labels), room.predictions) - len(batch.labels)
    for name in _OF_PREDICTIONS:
        array = moved_T[batch.prediction_positions] if name == "prediction_positions" else getattr(batch, name)
        grown[name] = _padded(array, more)
    return replace(batch, max_row=room.length, **grown)


def _padded(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The array with `size` zeros, or rows of zeros, appended."""
    return np.concatenate([array, np.zeros((size, *array.shape[1:]), array.dtype)])


def _rounded(number: int, step: int) -> int:
    """`number` rounded up to a multiple of `step`, at least `step`."""
    return max(1, -(-number // step)) * step
