"""Reads the batches of a file of tokenised rows: an Arrow stream as saved by `datasets`, or Parquet as on its hub.

The file may be hostile, and must not take more memory than its size. `datasets` never compresses its streams, so they
are memory-mapped. A compressed batch of kilobytes could expand to gigabytes on first access, and the library has no
option to limit this. A field of its metadata states whether a batch is compressed (Arrow columnar format, Message.fbs:
`RecordBatch.compression`); this module reads it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bertwright.formats.errors import ShardError, package, reading
from bertwright.formats.parquet_checks import is_parquet, open_parquet_lists

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
        if any(map(_compressed, pa.ipc.MessageReader.open_stream(mapped))):
            raise ShardError(file, "it is compressed, which is not supported because datasets never writes such files")
        mapped.seek(0)
        with pa.ipc.open_stream(mapped) as stream:
            yield stream


def _compressed(message: Any) -> bool:
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
