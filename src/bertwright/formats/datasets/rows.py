"""Reads files of tokenised rows: an Arrow stream as saved by `datasets`, or Parquet as on its hub.

The file may be hostile, and must not take more memory than its size. `datasets` never compresses its streams, so they
are memory-mapped. A compressed batch of kilobytes could expand to gigabytes on first access, and the library has no
option to limit this. A field of its metadata states whether a batch is compressed (Arrow columnar format, Message.fbs:
`RecordBatch.compression`); this module reads it.

Parquet cannot be read from any row on: each range would decode its row group from the beginning, which takes quadratic
time where a file is one row group. So the batches of the file read last stay open, one file per process, and the next
range continues from there. A range further back opens the file anew, at the row group that holds its first row.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.examples.instances import Ints, ends
from bertwright.formats.columns import Place
from bertwright.formats.errors import ShardError, package, reading
from bertwright.formats.parquet_checks import Batches, is_parquet, open_parquet_lists

COLUMNS = (
    "input_ids",
    "attention_mask",
    "special_tokens_mask",
    "token_type_ids",
    "labels",
    "next_sentence_label",
)
"""The columns to read, if present."""
CONTINUED = b"\xff\xff\xff\xff"
_END = CONTINUED + bytes(4)
_HEADER, _DATA, _COMPRESSION = 2, 1, 3  # fields of Message, DictionaryBatch and RecordBatch


@contextmanager
def open_batches(file: Path) -> Iterator[Any]:
    """Open the batches of `file`, with their `schema`; errors in the body name `file`."""
    with open_parquet_lists(file, COLUMNS) if is_parquet(file) else _open_stream(file) as batches:
        yield batches


@contextmanager
def _open_stream(file: Path) -> Iterator[Any]:
    """Open the batches of an Arrow stream file; errors in the body name `file`."""
    pa = package("pyarrow")
    with reading(file), pa.memory_map(str(file)) as mapped:
        mapped.seek(max(mapped.size() - len(_END), 0))
        if mapped.read() != _END:  # a stream cut off between two batches would read as a shorter one
            raise ShardError(file, "it is truncated")
        mapped.seek(0)
        # Check all metadata first: a batch is decompressed on first access.
        if any(map(_is_compressed, pa.ipc.MessageReader.open_stream(mapped))):
            raise ShardError(file, "it is compressed, which is not supported because datasets never writes such files")
        mapped.seek(0)
        with pa.ipc.open_stream(mapped) as stream:
            yield stream


def _is_compressed(message: Any) -> bool:
    if message.type not in ("record batch", "dictionary"):
        return False
    data = message.metadata.to_pybytes()
    try:
        header = _table(data, _table(data, 0, None), _HEADER)
        batch = _table(data, header, _DATA) if message.type == "dictionary" else header
        return _field(data, batch, _COMPRESSION) is not None
    except struct.error as error:
        # `reading` converts a `ValueError` and adds the file name.
        raise ValueError("its metadata is damaged") from error


def _table(data: bytes, table: int, field: int | None) -> int:
    """Return the offset of the table in a field of a FlatBuffers table; None: of the table that `table` points to."""
    at = table if field is None else _field(data, table, field)
    if at is None:
        raise ValueError("its metadata is damaged")
    return at + int(struct.unpack_from("<I", data, at)[0])


def _field(data: bytes, table: int, field: int) -> int | None:
    """Return the offset of a field of a FlatBuffers table; None when it is absent."""
    entries = table - int(struct.unpack_from("<i", data, table)[0])
    # Writers of earlier versions of the format have fewer fields.
    if 4 + 2 * field >= struct.unpack_from("<H", data, entries)[0]:
        return None
    offset = int(struct.unpack_from("<H", data, entries + 4 + 2 * field)[0])
    # FlatBuffers omits a field that has its default value.
    return table + offset if offset else None


_kept: list[_Stream] = []
"""The stream of the last range, if the file has more rows."""


@dataclass
class _Stream:
    """The batches of a file that are not yet read."""

    version: tuple[Path, int, int, int, int]
    """The file, its inode, its size and when it was written: a file that is replaced is opened anew. And the process,
    because Arrow's threads do not survive a fork."""
    batches: Iterator[tuple[int, Any]]
    at: int
    """Number of the next row."""
    pending: Any = None
    """The rest of the batch at row `at`."""


def rows_of(file: Path, first: int, stop: int) -> Iterator[tuple[int, Any]]:
    """Yield the rows `first` to `stop` of a file in Arrow batches, each with the number of its first row."""
    stream = _open(file, first)
    while stream.at < stop:
        if stream.pending is None and (following := next(stream.batches, None)) is not None:
            stream.at, stream.pending = following
        if stream.pending is None:
            return
        here, batch = stream.at, stream.pending
        end = min(stop - here, len(batch))
        # Rows before the range are skipped.
        begin = min(max(first - here, 0), end)
        stream.at, stream.pending = here + end, batch.slice(end) if end < len(batch) else None
        if begin < end:
            yield here + begin, batch.slice(begin, end - begin)
    # Only after a range that was read to its end: after an error the file is closed.
    _kept.append(stream)


def _open(file: Path, first: int) -> _Stream:
    """Return the stream that was kept if it is of this file and not beyond the row `first`; else a new one."""
    with reading(file):
        stat = os.stat(file)
    version = (file, stat.st_ino, stat.st_size, stat.st_mtime_ns, os.getpid())
    while _kept:
        stream = _kept.pop()
        if stream.version == version and stream.at <= first:
            return stream
    return _Stream(version, _batches(file, first), first)


def _batches(file: Path, first: int) -> Iterator[tuple[int, Any]]:
    """Yield the batches of a file, for Parquet from the row group with the row `first` on."""
    with open_batches(file) as batches:
        at, stream = batches.from_row(first) if isinstance(batches, Batches) else (0, batches)
        for batch in stream:
            yield at, batch
            at += len(batch)


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


def list_values(place: Place, batch: Any, name: str) -> tuple[NDArray[np.int64], Ints]:
    """[T] the integers in a column, lists concatenated, and [N] the lengths of the lists."""
    lengths, values = lengths_of(place, batch, name), batch.column(name).flatten()
    if values.null_count:
        raise ShardError(place.file, f"{name} near example {place.first_row:,} has gaps (null)")
    return values.to_numpy().astype(np.int64), lengths


def aligned_values(place: Place, batch: Any, name: str, lengths: Ints) -> NDArray[np.int64]:
    """[T] the integers in a column. Raises `ShardError` unless its lists are as long as those of input_ids, `lengths`
    [N]."""
    values, own_lengths = list_values(place, batch, name)
    if len(wrong := np.flatnonzero(own_lengths != lengths)):
        raise ShardError(place.file, f"example {place.first_row + wrong[0]:,}: {name} is not as long as input_ids")
    return values


def find_padding(place: Place, batch: Any, whole: Ints) -> tuple[NDArray[np.bool_], Ints]:
    """[T] which values of input_ids, in lists of lengths `whole` [N], are not padding; [N] the lengths without it."""
    if "attention_mask" not in batch.schema.names:
        return np.ones(int(whole.sum()), bool), whole
    mask = aligned_values(place, batch, "attention_mask", whole) != 0
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
