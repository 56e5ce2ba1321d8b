"""A micro-batch: flat tokens of whole sequences, one after another, without padding."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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


def batch_hash(batch: MicroBatch) -> str:
    """32 hexadecimal digits of a BLAKE2b hash over all arrays, for logs and tests."""
    digest = hashlib.blake2b(digest_size=16)
    for field in fields(batch):
        array = np.ascontiguousarray(getattr(batch, field.name))
        digest.update(f"{field.name}:{array.dtype.str}:{array.shape};".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _extended(array: NDArray[Any], size: int, value: int) -> NDArray[Any]:
    return np.concatenate([array, np.full(size - len(array), value, array.dtype)])
