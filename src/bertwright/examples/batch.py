"""The batch: flat tokens of whole sequences, one after another, without padding between them.

Names carry shapes: B sequences, T tokens of all sequences together, P predictions, R rows of a padded layout.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass, fields
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
    """What the network reads in one forward pass, in numpy arrays as it is drawn or in tensors of one device.

    Sequence b is the tokens `cu_seqlens[b] : cu_seqlens[b + 1]`. T, B and P may all be 0: a rank without a sequence for
    a micro-batch gets an empty one, to be skipped. A batch of fixed shape keeps the contract with
    sequences and predictions that count nothing: its last tokens form padding sequences, unused entries of
    `cu_seqlens` equal T (sequences of length 0), unused predictions have position 0, and both have weight 0.
    """

    token_ids: Array
    """[T] int64, rows of the token embedding: the ids after masking."""
    position_ids: Array
    """[T] int64, from 0 in every sequence."""
    segment_ids: Array
    """[T] int64, 0 for [CLS] A [SEP], 1 for B [SEP]."""
    cu_seqlens: Array
    """[B + 1] int32, where sequences begin and end, from 0 to T."""
    cu_rows: Array
    """[R + 1] int32, where the rows begin and end that a padded layout gives the tokens: each holds whole sequences,
    one or, in a batch packed into rows, several."""
    max_row: int
    """Tokens of the longest row, the padding sequence included."""
    prediction_positions: Array
    """[P] int64, rising indices into the T tokens."""
    labels: Array
    """[P] int64, the original ids there."""
    weights: Array
    """[P] float32, weight of each prediction in the loss: 1, or 0 for padding."""
    sequence_labels: Array
    """[B] int64: of a pair 1 when B is a random segment (NSP) or both are swapped (SOP), 0 when B follows A; of a
    classification the number of the class, and where labels are numbers, these, float32."""
    sequence_weights: Array
    """[B] float32, weight of each sequence in the loss of these labels; 0 for padding and for what has none."""

    @property
    def counts(self) -> Counts:
        """B, T and P."""
        return Counts(len(self.cu_seqlens) - 1, len(self.token_ids), len(self.labels))

    def map(self, convert: Callable[[Array], Other]) -> Batch[Other]:
        """The same batch with every array converted."""
        # The longest row is a number here, so that no kernel has to wait for the device to tell it.
        arrays = (field.name for field in fields(self) if field.name != "max_row")
        converted: dict[str, Any] = {name: convert(getattr(self, name)) for name in arrays}
        return Batch(max_row=self.max_row, **converted)


MicroBatch = Batch[NDArray[Any]]
"""A batch as it is drawn: what a rank trains on between two sums of gradients."""


def max_row(cu_rows: NDArray[np.integer[Any]]) -> int:
    """Tokens of the longest of the R rows that `cu_rows` [R + 1] bounds; 0 where there is none."""
    return int(np.diff(cu_rows).max(initial=0))


def batch_hash(batch: MicroBatch) -> int:
    """A number below 2^64 for what training sees of a batch, whatever the order, rows and padding of its sequences.

    It is the sum, modulo 2^64, of one hash per sequence: so the numbers of parts add up to that of the whole, however
    ranks and micro-batches cut it. A sequence's hash is over id, position and segment of every token, place, label and
    weight of every prediction, and its own label and weight. What has weight 0 does not count, and neither does
    a sequence that has no other weight, such as padding: nothing is learned from it.
    """
    words = batch.token_ids << 24  # then 24 bits of position and 8 of segment, in place: memory is most of the time
    words += batch.position_ids
    words <<= 8
    words += batch.segment_ids
    tokens = bits(0, words.view(np.uint64))
    counted = np.flatnonzero(batch.weights)
    places = batch.prediction_positions[counted]
    # Keyed by the hash of its token: the same label counts otherwise at another place.
    predictions = bits(tokens[places], _weighted(batch.labels[counted], batch.weights[counted]))
    bounds = np.searchsorted(places, batch.cu_seqlens)
    # Sums, because sequences are of any length; position and segment are in the hash of each token.
    content = _sums(tokens, batch.cu_seqlens) + _sums(predictions, bounds)
    hashes = bits(content, _weighted(batch.sequence_labels, batch.sequence_weights))
    return int(hashes[(np.diff(bounds) > 0) | (batch.sequence_weights != 0)].sum())


def hash_digits(number: int) -> str:
    """The 16 hexadecimal digits shown for a sum of batch hashes."""
    return f"{number % 2**64:016x}"


def _weighted(labels: NDArray[Any], weights: NDArray[np.float32]) -> NDArray[np.int64]:
    """Each label with the bits of its weight below it; 0 where the weight is 0."""
    if labels.dtype == np.float32:
        labels = labels.view(np.int32).astype(np.int64)  # numbers that a sequence is labelled with, by their bits
    words: NDArray[np.int64] = (labels << 32 | weights.view(np.uint32)) * (weights != 0)
    return words


def _sums(values: Bits, bounds: NDArray[np.integer[Any]]) -> Bits:
    """The sum of `values`, modulo 2^64, between each two neighbours of `bounds`."""
    filled = np.diff(bounds) > 0  # reduceat takes one value where there is none
    sums = np.zeros(len(filled), np.uint64)
    sums[filled] = np.add.reduceat(values, bounds[:-1][filled])
    return sums
