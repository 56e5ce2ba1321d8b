"""A micro-batch: flat tokens of whole sequences, one after another, without padding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import Bits, bits

PREDICTIONS_MULTIPLE = 64


class Counts(NamedTuple):
    """Sizes of a micro-batch."""

    sequences: int
    tokens: int
    predictions: int


@dataclass(frozen=True)
class MicroBatch:
    """T tokens of B sequences with P predictions; all may be 0: a rank without a sequence for a micro-batch gets an
    empty one, to be skipped or made static. Without sentence pairs `sequence_weights` are 0."""

    token_ids: NDArray[np.int64]
    """[T] ids after masking."""
    position_ids: NDArray[np.int64]
    """[T] positions, from 0 in every sequence."""
    segment_ids: NDArray[np.int64]
    """[T] 0 for [CLS] A [SEP], 1 for B [SEP]."""
    cu_seqlens: NDArray[np.int32]
    """[B + 1] where sequences begin and end."""
    cu_rows: NDArray[np.int32]
    """[R + 1] where the rows of a padded layout begin and end: sequences packed together, else single ones."""
    prediction_positions: NDArray[np.int64]
    """[P] rising indices into the T tokens."""
    labels: NDArray[np.int64]
    """[P] original ids there."""
    weights: NDArray[np.float32]
    """[P] weight of each prediction in the loss: 1, or 0 for padding."""
    next_sentence_labels: NDArray[np.int64]
    """[B] 1 when B is a random segment."""
    sequence_weights: NDArray[np.float32]
    """[B] weight of each sequence in the next-sentence loss."""

    @property
    def counts(self) -> Counts:
        """B, T and P."""
        return Counts(len(self.cu_seqlens) - 1, len(self.token_ids), len(self.labels))

    def static(self, tokens: int, sequences: int, predictions: int, pad: int = 0) -> MicroBatch:
        """The same micro-batch in a fixed shape: the tail is one padding sequence of `pad` tokens at position 0.

        The other half of the contract of batches: the network takes either shape, and compiled code wants this one.
        `sequences` counts the padding sequence; unused `cu_seqlens` equal `tokens`; `predictions` is rounded up to
        a multiple of 64, unused ones point at token 0 with weight 0. Raises ValueError when it does not fit.
        """
        predictions = -(-predictions // PREDICTIONS_MULTIPLE) * PREDICTIONS_MULTIPLE
        have = self.counts
        needed = have.sequences + (have.tokens < tokens)
        if have.tokens > tokens or needed > sequences or have.predictions > predictions:
            room = f"{tokens} tokens, {sequences} sequences (one for padding) and {predictions} predictions"
            raise ValueError(f"{have} does not fit into {room}")
        return MicroBatch(
            token_ids=_extended(self.token_ids, tokens, pad),
            position_ids=_extended(self.position_ids, tokens, 0),
            segment_ids=_extended(self.segment_ids, tokens, 0),
            cu_seqlens=_extended(self.cu_seqlens, sequences + 1, tokens),
            cu_rows=_extended(self.cu_rows, sequences + 1, tokens),
            prediction_positions=_extended(self.prediction_positions, predictions, 0),
            labels=_extended(self.labels, predictions, 0),
            weights=_extended(self.weights, predictions, 0),
            next_sentence_labels=_extended(self.next_sentence_labels, sequences, 0),
            sequence_weights=_extended(self.sequence_weights, sequences, 0),
        )


def batch_hash(batch: MicroBatch) -> int:
    """A number below 2^64 for what training sees of a batch, whatever the order, rows and padding of its sequences.

    It is the sum, modulo 2^64, of one hash per sequence: so the numbers of parts add up to that of the whole, however
    ranks and micro-batches cut it. A sequence's hash is over id, position and segment of every token, place, label and
    weight of every prediction, and next-sentence label and weight. What has weight 0 does not count, and neither does
    a sequence that has no other weight, such as padding: nothing is learned from it.
    """
    words = batch.token_ids << 24  # then 24 bits of position and 8 of segment, in place: memory is most of the time
    words += batch.position_ids
    words <<= 8
    words += batch.segment_ids
    tokens = bits(0, words.view(np.uint64))
    counted = np.flatnonzero(batch.weights)
    places = batch.prediction_positions[counted]
    predictions = bits(tokens[places], _weighted(batch.labels[counted], batch.weights[counted]))
    bounds = np.searchsorted(places, batch.cu_seqlens)
    content = _sums(tokens, batch.cu_seqlens) + _sums(predictions, bounds)
    hashes = bits(content, _weighted(batch.next_sentence_labels, batch.sequence_weights))
    return int(hashes[(np.diff(bounds) > 0) | (batch.sequence_weights != 0)].sum())


def hash_digits(number: int) -> str:
    """The 16 hexadecimal digits shown for a sum of batch hashes."""
    return f"{number % 2**64:016x}"


def _weighted(labels: NDArray[np.int64], weights: NDArray[np.float32]) -> NDArray[np.int64]:
    """Each label with the bits of its weight below it; 0 where the weight is 0."""
    words: NDArray[np.int64] = (labels << 32 | weights.view(np.uint32)) * (weights != 0)
    return words


def _sums(values: Bits, bounds: NDArray[np.integer[Any]]) -> Bits:
    """The sum of `values`, modulo 2^64, between each two neighbours of `bounds`."""
    filled = np.diff(bounds) > 0  # reduceat takes one value where there is none
    sums = np.zeros(len(filled), np.uint64)
    sums[filled] = np.add.reduceat(values, bounds[:-1][filled])
    return sums


def _extended(array: NDArray[Any], size: int, value: int) -> NDArray[Any]:
    return np.concatenate([array, np.full(size - len(array), value, array.dtype)])
