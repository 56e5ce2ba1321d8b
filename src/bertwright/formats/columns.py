"""Conversion between the columns stored in files (padded matrices, segment ids) and `Instances`, with their checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.errors import DataError
from bertwright.examples.instances import Instances, Ints, ends
from bertwright.formats.errors import ShardError

MAX_LENGTH = 32_768
"""Maximum number of tokens of an example."""


def check_instances(examples: Instances, file: Path, first_row: int, vocabulary_size: int | None = None) -> Instances:
    """Return `examples`, the rows of `file` from `first_row` on. The first invalid example raises `ShardError`."""
    # Without a vocabulary no id is too large: `inspect` counts such ids, while training rejects them.
    size = np.iinfo(np.int32).max if vocabulary_size is None else vocabulary_size
    within = f"outside the vocabulary of {size:,} entries" if vocabulary_size else "negative"
    token_rows = np.repeat(np.arange(len(examples)), examples.lengths)
    rows = np.repeat(np.arange(len(examples)), np.diff(examples.cu_predictions))
    lengths, positions = examples.lengths, examples.positions
    falling = np.diff(positions, prepend=0) <= 0
    # The first position of an example may be lower than the last one of the previous example.
    falling[examples.cu_predictions[:-1][np.diff(examples.cu_predictions) > 0]] = False
    rules = [
        (np.flatnonzero((lengths < 1) | (lengths > MAX_LENGTH)), f"its length is not 1 to {MAX_LENGTH:,}"),
        (token_rows[(examples.token_ids < 0) | (examples.token_ids >= size)], f"a token id is {within}"),
        (rows[(examples.labels < 0) | (examples.labels >= size)], f"the label of a prediction is {within}"),
        (rows[(positions < 1) | (positions >= lengths[rows])], "a prediction is not between [CLS] and the end"),
        (rows[falling], "the positions of its predictions are not in ascending order"),
        (np.flatnonzero((examples.second < 1) | (examples.second > lengths)), "its second segment begins outside it"),
        (np.flatnonzero(np.abs(examples.next_sentence_labels) > 1), "its next-sentence label is not 0, 1 or -1"),
    ]
    for broken, fault in rules:
        if len(broken):
            raise ShardError(file, f"example {first_row + broken[0]:,}: {fault}")
    return examples


def must_fit(examples: Instances, file: Path, first_row: int, length: int | None, predictions: int | None) -> None:
    """Raise `DataError` for the first example that has more tokens or predictions than `file` states or has room for;
    None: any number."""
    for sizes, room, unit in (
        (examples.lengths, length, "tokens"),
        (np.diff(examples.cu_predictions), predictions, "predictions"),
    ):
        if room is not None and len(over := np.flatnonzero(sizes > room)):
            raise DataError(
                f"{file}: example {first_row + over[0]:,} has {sizes[over[0]]:,} {unit}, but the maximum is "
                f"{room:,}. Set a larger maximum of {unit}."
            )


Ragged = tuple[NDArray[Any], Ints]
"""The concatenated values of N rows, and the number of values in each row."""


@dataclass(frozen=True)
class Place:
    """Where rows come from; used in messages and checks."""

    file: Path
    first_row: int
    vocabulary: Sequence[str] | None


def instances_of(
    place: Place,
    tokens: Ragged,
    segment_ids: NDArray[Any],
    positions: Ragged,
    labels: NDArray[Any],
    next_sentence_labels: NDArray[Any],
) -> Instances:
    """Build N checked examples from the columns of a file: T tokens and their `segment_ids` [T], M positions and their
    `labels` [M], and `next_sentence_labels` [N]. Raises `ShardError` when the columns are inconsistent."""
    flat, lengths = tokens
    # If the columns differ in length, numpy would fail later with an error that does not name the file.
    if len(segment_ids) != len(flat):
        raise ShardError(place.file, f"{len(segment_ids):,} segment ids for {len(flat):,} tokens")
    if len(labels) != len(positions[0]):
        raise ShardError(place.file, f"{len(labels):,} predicted ids for {len(positions[0]):,} positions")
    if len(next_sentence_labels) != len(lengths):
        raise ShardError(
            place.file, f"{len(next_sentence_labels):,} next-sentence labels for {len(lengths):,} examples"
        )
    cu_seqlens = ends(lengths)
    # This count assumes that the ones come last; the comparison at the end checks it.
    sums = ends(segment_ids.astype(np.int64))[cu_seqlens]
    examples = Instances(
        _int32(place, flat),
        cu_seqlens,
        (lengths - np.diff(sums)).astype(np.int32),
        _int32(place, positions[0]),
        _int32(place, labels),
        ends(positions[1]),
        # Clip before the cast: 257 would wrap around to the label 1 in 8 bits.
        np.clip(next_sentence_labels, -2, 2).astype(np.int8),
    )
    check_instances(examples, place.file, place.first_row, None if place.vocabulary is None else len(place.vocabulary))
    if len(wrong := np.flatnonzero(examples.segment_ids != segment_ids)):
        row = place.first_row + int(np.searchsorted(cu_seqlens, wrong[0], side="right")) - 1
        raise ShardError(place.file, f"example {row:,}: its segment ids are not zeros followed by ones")
    return examples


def trim(matrix: NDArray[Any], counts: Ints) -> NDArray[Any]:
    """[T] the first `counts[r]` values of each row r of a matrix [N, width], concatenated; `counts` is [N]."""
    flat: NDArray[Any] = matrix[np.arange(matrix.shape[1]) < counts[:, None]]
    return flat


def instances_of_padded(place: Place, columns: Mapping[str, NDArray[Any]], counts: Ints) -> Instances:
    """Build N checked examples from the padded columns (see `padded_columns`), with `counts` [N] predictions each."""
    lengths = prefix_lengths(place, columns["input_mask"])
    return instances_of(
        place,
        (trim(columns["input_ids"], lengths), lengths),
        trim(columns["segment_ids"], lengths),
        (trim(columns["masked_lm_positions"], counts), counts),
        trim(columns["masked_lm_ids"], counts),
        columns["next_sentence_labels"],
    )


def padded_columns(block: Instances, length: int, predictions: int) -> dict[str, NDArray[Any]]:
    """The columns of NVIDIA's and Google's builders: [N, length] for tokens, [N, predictions] for predictions, [N]."""
    ones = np.ones(len(block.token_ids), np.int8)
    return {
        "input_ids": pad(block.token_ids, block.cu_seqlens, length, "<i4"),
        "input_mask": pad(ones, block.cu_seqlens, length, "i1"),
        "segment_ids": pad(block.segment_ids, block.cu_seqlens, length, "i1"),
        "masked_lm_positions": pad(block.positions, block.cu_predictions, predictions, "<i4"),
        "masked_lm_ids": pad(block.labels, block.cu_predictions, predictions, "<i4"),
        "next_sentence_labels": block.next_sentence_labels,
    }


def check_widths(file: Path, length: int, predictions: int) -> None:
    """Raise `ShardError` unless padded examples may have room for so many tokens and predictions."""
    if not 0 < length <= MAX_LENGTH or not 0 < predictions <= length:
        raise ShardError(
            file, f"{length:,} tokens and {predictions:,} predictions: at most {MAX_LENGTH:,} are supported"
        )


def before_sentinel(place: Place, positions: NDArray[Any], labels: NDArray[Any]) -> Ints:
    """[N] the number of predictions in each row of `positions` and `labels` [N, P]: those before the first position 0.

    NVIDIA's loader (run_pretraining.py, pretraining_dataset) reads padding this way: position 0 is [CLS]. Predictions
    after a position 0 would be lost silently, so they raise `ShardError`.
    """
    counts: Ints = np.cumprod(positions != 0, axis=1, dtype=np.int64).sum(axis=1)
    padding = np.arange(positions.shape[1]) >= counts[:, None]
    if len(wrong := np.flatnonzero((((positions != 0) | (labels != 0)) & padding).any(axis=1))):
        row, count = place.first_row + wrong[0], counts[wrong[0]]
        fault = f"example {row:,} has a position 0 ([CLS]) after {count:,} predictions, which hides those after it"
        raise ShardError(place.file, fault)
    return counts


def pad(values: NDArray[Any], cu: Ints, width: int, dtype: str) -> NDArray[Any]:
    """[N, width] the rows of `values`, whose boundaries are `cu` [N + 1], padded with zeros."""
    matrix = np.zeros((len(cu) - 1, width), dtype)
    matrix[np.arange(width) < np.diff(cu)[:, None]] = values
    return matrix


def prefix_lengths(place: Place, mask: NDArray[Any]) -> Ints:
    """[N] the number of ones in each row of an attention mask [N, S]. A one after a zero raises `ShardError`."""
    counts: Ints = np.count_nonzero(mask, axis=1).astype(np.int64)
    if len(wrong := np.flatnonzero(((mask != 0) != (np.arange(mask.shape[1]) < counts[:, None])).any(axis=1))):
        raise ShardError(place.file, f"example {place.first_row + wrong[0]:,}: its mask is not ones followed by zeros")
    return counts


def _int32(place: Place, values: NDArray[Any]) -> NDArray[np.int32]:
    limits = np.iinfo(np.int32)
    # Check before the cast, which would wrap around.
    if len(values) and (values.min() < limits.min or values.max() > limits.max):
        raise ShardError(place.file, f"an id or position near example {place.first_row:,} exceeds 32 bits")
    return values.astype(np.int32)
