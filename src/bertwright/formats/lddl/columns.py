"""The columns of a possibly hostile Parquet file of LDDL: texts, and positions, each the content of a .npy file.

A column that repeats one text takes almost no space in the file, but gigabytes as a list of texts. So text columns stay
dictionary-encoded (indices into the distinct texts) until their lengths are known to fit `num_tokens`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.examples.instances import Ints, stretches
from bertwright.formats.columns import MAX_LENGTH, Place
from bertwright.formats.errors import ShardError, package

TEXTS, POSITIONS = ("A", "B", "masked_lm_labels"), "masked_lm_positions"
_AT_ONCE = 2**18
"""Approximate maximum number of tokens split at once."""
_SHORT = 64
"""Bytes that a piece may have with any vocabulary, so that a wrong vocabulary is detected by its unknown pieces."""
_HEAD = 1024
"""Maximum number of bytes before the values in a .npy file; numpy writes 128."""


def pieces(place: Place, batch: Any, longest: int) -> list[tuple[int, int]]:
    """Return ranges [start, stop) of the rows of `batch` that are safe to split at once.

    `longest`: number of bytes of the longest vocabulary entry. Raises `ShardError` for a column with another type, with
    nulls, or with more bytes than the tokens of an example can have.
    """
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        kind = column.type.value_type if package("pyarrow").types.is_dictionary(column.type) else column.type
        if not any(fits(kind) for fits in _kinds(name)):
            raise ShardError(place.file, f"{name} holds {kind}")
        if column.null_count:
            row = place.first_row + column.is_null().to_pylist().index(True)
            raise ShardError(place.file, f"example {row:,} has no {name}")
    tokens: Ints = batch.column("num_tokens").to_numpy(zero_copy_only=False).astype(np.int64)
    for name in (*TEXTS, POSITIONS):
        if name in batch.schema.names:
            # Each token takes a piece and the blank after it.
            room = 2 * tokens + _HEAD if name == POSITIONS else (max(longest, _SHORT) + 1) * tokens
            # An absurd num_tokens allows nothing; otherwise it would allow any text.
            _must_fit(place, name, batch.column(name), np.where(tokens > MAX_LENGTH, 0, room))
    return stretches(tokens, _AT_ONCE)


def _must_fit(place: Place, name: str, column: Any, room: Ints) -> None:
    # Measure only the distinct texts: as a plain list, kilobytes that repeat one text took gigabytes.
    sizes = package("pyarrow.compute").binary_length(column.dictionary).to_numpy()[column.indices.to_numpy()]
    if len(wrong := np.flatnonzero(sizes > room)):
        row = int(wrong[0])
        fault = (
            f"example {place.first_row + row:,} has {sizes[row]:,} bytes of {name}, too many for the value of "
            "num_tokens"
        )
        raise ShardError(place.file, fault)


def _kinds(name: str) -> tuple[Callable[[Any], bool], ...]:
    """Return predicates for the types that the column `name` may have."""
    types = package("pyarrow").types
    if name == POSITIONS:
        return types.is_binary, types.is_large_binary
    return (types.is_string, types.is_large_string) if name in TEXTS else (types.is_boolean, types.is_integer)


_VERSION_1 = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(rb"\{'descr': '<u2', 'fortran_order': False, 'shape': \((\d+),\), \} *\n")


def read_positions(place: Place, row: int, stored: bytes) -> NDArray[np.uint16]:
    """Parse the positions [P] of a row; raises `ShardError` for anything but a one-dimensional array of uint16."""
    # Not numpy's own reader: it takes any type and shape, and a file from elsewhere could ask it for any memory.
    size = int.from_bytes(stored[8:10], "little")
    header = _HEADER.fullmatch(stored[10 : 10 + size]) if stored[:8] == _VERSION_1 else None
    values = stored[10 + size :]
    if header is None or int(header[1]) * 2 != len(values):
        raise ShardError(
            place.file, f"example {place.first_row + row:,}: masked_lm_positions is not an array of uint16"
        )
    return np.frombuffer(values, "<u2")


def store_positions(positions: NDArray[np.integer]) -> bytes:
    """The content of a .npy file with these positions [P]."""
    text = f"{{'descr': '<u2', 'fortran_order': False, 'shape': ({len(positions)},), }}"
    header = text.ljust(117).encode() + b"\n"
    return b"".join([_VERSION_1, len(header).to_bytes(2, "little"), header, positions.astype("<u2").tobytes()])
