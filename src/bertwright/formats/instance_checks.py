"""Checks of examples that are read from a file or written to one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bertwright.core.errors import DataError
from bertwright.examples.instances import Instances
from bertwright.formats.errors import ShardError

MAX_LENGTH = 32_768
"""Maximum number of tokens of an example."""


def checked(examples: Instances, file: Path, first_row: int, vocabulary_size: int | None = None) -> Instances:
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
