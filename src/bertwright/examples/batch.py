"""The batch: the tokens of complete sequences, concatenated without padding between them.

Names carry shapes: B sequences, T tokens of all sequences together, P predictions, R rows of a padded layout.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import Bits, bits

Array = TypeVar("Array", bound=Sized)
Other = TypeVar("Other", bound=Sized)


class Counts(NamedTuple):
    """Sizes of a micro-batch."""

    sequences: int
    tokens: int
    predictions: int


@dataclass(frozen=True)
class Batch(Generic[Array]):
    """The input of one forward pass, as numpy arrays from the loader or as tensors on one device.

    Sequence b consists of the tokens `cu_seqlens[b] : cu_seqlens[b + 1]`. T, B and P may all be 0: a rank that has no
    sequence for a micro-batch gets an empty one and skips it. A batch of fixed shape is filled up with sequences and
    predictions of weight 0: its last tokens form padding sequences, unused entries of `cu_seqlens` equal T (sequences
    of length 0), and unused predictions have position 0.
    """

    token_ids: Array
    """[T] int64, rows of the token embedding: the ids after masking."""
    position_ids: Array
    """[T] int64, from 0 in every sequence."""
    segment_ids: Array
    """[T] int64, 0 for [CLS] A [SEP], 1 for B [SEP]."""
    cu_seqlens: Array
    """[B + 1] int32, sequence boundaries, from 0 to T."""
    cu_rows: Array
    """[R + 1] int32, boundaries of the rows of a padded layout. A row holds complete sequences: one, or several if the
    batch is packed into rows."""
    max_row: int
    """Tokens of the longest row, including a padding sequence."""
    prediction_positions: Array
    """[P] int64, increasing indices into the T tokens."""
    labels: Array
    """[P] int64, the original ids at these positions."""
    weights: Array
    """[P] float32, weight of each prediction in the loss: 1, or 0 for padding."""
    sequence_labels: Array
    """[B] int64, or [B, K] if a sequence has K labels. For pairs: 1 if B is a random segment (NSP) or the segments are
    swapped (SOP), 0 if B follows A. For classification: the class number; for regression: the target number, as
    float32."""
    sequence_weights: Array
    """[B] float32, weight of each sequence in the loss of these labels; 0 for padding and unlabelled sequences."""

    @property
    def counts(self) -> Counts:
        """B, T and P."""
        return Counts(len(self.cu_seqlens) - 1, len(self.token_ids), len(self.labels))

    def map(self, convert: Callable[[Array], Other]) -> Batch[Other]:
        """The same batch with every array converted."""
        # `max_row` stays a Python int, so that no kernel launch has to wait for the device to compute it.
        arrays = (field.name for field in fields(self) if field.name != "max_row")
        converted: dict[str, Any] = {name: convert(getattr(self, name)) for name in arrays}
        return Batch(max_row=self.max_row, **converted)


MicroBatch = Batch[NDArray[Any]]
"""A batch in numpy arrays, as a loader returns it: the input of one forward and backward pass of a rank."""


def max_row(cu_rows: NDArray[np.integer[Any]]) -> int:
    """Tokens of the longest of the R rows delimited by `cu_rows` [R + 1]; 0 if there are no rows."""
    return int(np.diff(cu_rows).max(initial=0))


def split(batch: MicroBatch, row_sizes: list[NDArray[np.int64]]) -> list[MicroBatch]:
    """A packed batch split into packed batches, each specified by the number of sequences in its R rows, [R]."""
    sequence_cuts = np.cumsum([0, *(int(sizes.sum()) for sizes in row_sizes)])
    token_cuts = batch.cu_seqlens[sequence_cuts]
    prediction_cuts = np.searchsorted(batch.prediction_positions, token_cuts)
    cuts = [[slice(*pair) for pair in pairwise(ends)] for ends in (sequence_cuts, token_cuts, prediction_cuts)]
    return [_cut(batch, *slices) for slices in zip(row_sizes, *cuts, strict=True)]


def _cut(
    batch: MicroBatch, row_sizes: NDArray[np.int64], sequences: slice, tokens: slice, predictions: slice
) -> MicroBatch:
    cu_seqlens = batch.cu_seqlens[sequences.start : sequences.stop + 1] - tokens.start
    cu_rows = cu_seqlens[np.concatenate([[0], np.cumsum(row_sizes)])]
    return MicroBatch(
        token_ids=batch.token_ids[tokens],
        position_ids=batch.position_ids[tokens],
        segment_ids=batch.segment_ids[tokens],
        cu_seqlens=cu_seqlens,
        cu_rows=cu_rows,
        max_row=max_row(cu_rows),
        prediction_positions=batch.prediction_positions[predictions] - tokens.start,
        labels=batch.labels[predictions],
        weights=batch.weights[predictions],
        sequence_labels=batch.sequence_labels[sequences],
        sequence_weights=batch.sequence_weights[sequences],
    )


def unmasked(batch: MicroBatch) -> NDArray[np.int64]:
    """[T] the ids of a batch before masking."""
    ids_T: NDArray[np.int64] = batch.token_ids.copy()
    ids_T[batch.prediction_positions] = batch.labels
    return ids_T


def batch_hash(batch: MicroBatch) -> int:
    """A 64-bit hash of what training sees of a batch, independent of the order, rows and padding of its sequences.

    It is the sum, modulo 2^64, of one hash per sequence, so the hashes of parts add up to the hash of the global batch,
    however it is divided over ranks and micro-batches. A sequence's hash covers the id, position and segment of every
    token, the position, label and weight of every prediction, and the sequence's own label and weight. Predictions of
    weight 0 are excluded, and so are sequences without any weight, such as padding: nothing is learned from them.
    """
    words = batch.token_ids << 24  # then 24 bits of position and 8 of segment, in place: memory access dominates
    words += batch.position_ids
    words <<= 8
    words += batch.segment_ids
    tokens = bits(0, words.view(np.uint64))
    counted = np.flatnonzero(batch.weights)
    places = batch.prediction_positions[counted]
    # Keyed by the hash of its token, so that the same label hashes differently at another position.
    predictions = bits(tokens[places], _weighted(batch.labels[counted], batch.weights[counted]))
    bounds = np.searchsorted(places, batch.cu_seqlens)
    # Sums, because sequences have any length; position and segment are part of each token's hash.
    content = _sums(tokens, batch.cu_seqlens) + _sums(predictions, bounds)
    hashes = content
    for labels in np.atleast_2d(batch.sequence_labels.T):  # one after the other, so that their order counts
        hashes = bits(hashes, _weighted(labels, batch.sequence_weights))
    return int(hashes[(np.diff(bounds) > 0) | (batch.sequence_weights != 0)].sum())


def hash_digits(number: int) -> str:
    """A sum of batch hashes as 16 hexadecimal digits, for display."""
    return f"{number % 2**64:016x}"


def _weighted(labels: NDArray[Any], weights: NDArray[np.float32]) -> NDArray[np.int64]:
    """Each label shifted up by 32 bits, with the bits of its weight below it; 0 where the weight is 0."""
    if labels.dtype == np.float32:
        labels = labels.view(np.int32).astype(np.int64)  # the bits of a regression target
    words: NDArray[np.int64] = (labels << 32 | weights.view(np.uint32)) * (weights != 0)
    return words


def _sums(values: Bits, bounds: NDArray[np.integer[Any]]) -> Bits:
    """The sum of `values`, modulo 2^64, between each two consecutive `bounds`."""
    filled = np.diff(bounds) > 0  # for an empty range, reduceat would return one value
    sums = np.zeros(len(filled), np.uint64)
    sums[filled] = np.add.reduceat(values, bounds[:-1][filled])
    return sums
