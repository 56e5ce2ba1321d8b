"""Builds batches of [CLS] A [SEP], or [CLS] A [SEP] B [SEP], from texts that are stored one after another.

Names carry shapes: N sequences.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertwright.examples.batch import MicroBatch
from bertwright.examples.example_set import Ids
from bertwright.examples.vocabulary import Vocabulary


class Parts(NamedTuple):
    """N parts of an array of tokens."""

    begins: Ids
    """[N] index of the first token of each."""
    counts: Ids
    """[N] tokens of each."""


def pack_texts(
    tokens: NDArray[Any], first: Parts, second: Parts | None, vocabulary: Vocabulary, labels: NDArray[Any]
) -> MicroBatch:
    """The texts `first` [N] of `tokens`, or their pairs with `second` [N], as a batch without predictions in which each
    sequence has a row and the weight 1; `labels` are those of the sequences, [N] or [N, K]."""
    lengths = first.counts + 2 + (0 if second is None else second.counts + 1)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    place = np.arange(ends[-1] if len(ends) else 0) - np.repeat(starts, lengths)
    # Indices at [CLS] and [SEP] point next to their text, possibly outside the array: clipped, then overwritten.
    inside = np.repeat(first.begins, lengths) + place - 1
    in_second = np.zeros(len(place), np.bool_)
    if second is not None:
        in_second = place > np.repeat(first.counts, lengths) + 1
        inside = np.where(in_second, np.repeat(second.begins - first.counts, lengths) + place - 2, inside)
    ids = np.take(tokens, inside, mode="clip").astype(np.int64) if len(tokens) else np.zeros_like(place)
    ids[starts] = vocabulary.cls
    ids[starts + first.counts + 1] = ids[ends - 1] = vocabulary.sep
    bounds, none = np.append(0, ends).astype(np.int32), np.zeros(0, np.int64)
    return MicroBatch(
        token_ids=ids,
        position_ids=place,
        segment_ids=in_second.astype(np.int64),
        cu_seqlens=bounds,
        cu_rows=bounds,
        max_row=int(lengths.max(initial=0)),
        prediction_positions=none,
        labels=none,
        weights=np.zeros(0, np.float32),
        sequence_labels=labels,
        sequence_weights=np.ones(len(lengths), np.float32),
    )


def cut_longer(first: Ids, second: Ids, room: int) -> tuple[Ids, Ids]:
    """[N] tokens kept of each text when the longer one is truncated at its end until both fit, as `tokenizers` does
    (`longest_first`): if both exceed half the room, each gets half, and the longer one gets the odd token."""
    shorter, longer = np.minimum(first, second), np.maximum(first, second)
    half = np.minimum(shorter, room // 2)
    rest = np.minimum(longer, room - half)
    swapped = first > second
    return np.where(swapped, rest, half), np.where(swapped, half, rest)
