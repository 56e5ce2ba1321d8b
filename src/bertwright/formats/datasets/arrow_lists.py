"""Reads the columns of an Arrow batch of tokenised rows: integer lists that may have nulls, padding or wrong types."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.examples.instances import Ints, ends
from bertwright.formats.columns import Place
from bertwright.formats.errors import ShardError, package


def lengths_of(place: Place, batch: Any, name: str) -> Ints:
    """[N] the lengths of the lists in a column. Raises `ShardError` unless it holds lists of integers without nulls."""
    types = package("pyarrow").types
    column = batch.column(name)
    kind = column.type
    # `Sequence(length=...)` of datasets is stored as fixed-size lists.
    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    if not lists or not types.is_integer(kind.value_type):
        raise ShardError(place.file, f"{name} holds {kind}, not lists of integers")
    # Flattening drops a null list, so values and lengths would no longer match.
    if column.null_count:
        raise ShardError(place.file, f"{name} near example {place.first_row:,} has gaps (null)")
    lengths: Ints = package("pyarrow.compute").list_value_length(column).to_numpy().astype(np.int64)
    return lengths


def runs(place: Place, batch: Any, name: str) -> tuple[NDArray[np.int64], Ints]:
    """[T] the integers in a column, lists concatenated, and [N] the lengths of the lists."""
    lengths, values = lengths_of(place, batch, name), batch.column(name).flatten()
    if values.null_count:
        raise ShardError(place.file, f"{name} near example {place.first_row:,} has gaps (null)")
    return values.to_numpy().astype(np.int64), lengths


def beside(place: Place, batch: Any, name: str, lengths: Ints) -> NDArray[np.int64]:
    """[T] the integers in a column. Raises `ShardError` unless its lists are as long as those of input_ids, `lengths`
    [N]."""
    values, own_lengths = runs(place, batch, name)
    if len(wrong := np.flatnonzero(own_lengths != lengths)):
        raise ShardError(place.file, f"example {place.first_row + wrong[0]:,}: {name} is not as long as input_ids")
    return values


def without_padding(place: Place, batch: Any, whole: Ints) -> tuple[NDArray[np.bool_], Ints]:
    """[T] which values of input_ids, in lists of lengths `whole` [N], are not padding; [N] the lengths without it."""
    if "attention_mask" not in batch.schema.names:
        return np.ones(int(whole.sum()), bool), whole
    mask = beside(place, batch, "attention_mask", whole) != 0
    cu = ends(whole)
    lengths = np.diff(ends(mask)[cu])
    # A token after a zero would be lost silently.
    if (mask != (np.arange(len(mask)) - np.repeat(cu[:-1], whole) < np.repeat(lengths, whole))).any():
        raise ShardError(place.file, f"near example {place.first_row:,}: attention_mask is not ones followed by zeros")
    return mask, lengths


def whole_numbers(place: Place, batch: Any, name: str) -> NDArray[np.int64]:
    """[N] the integers of a scalar column. Raises `ShardError` for nulls or another type."""
    column = batch.column(name)
    if column.null_count or not package("pyarrow").types.is_integer(column.type):
        raise ShardError(
            place.file, f"{name} near example {place.first_row:,} holds {column.type} or gaps, not integers"
        )
    values: NDArray[np.int64] = column.to_numpy().astype(np.int64)
    return values
