"""TFRecord framing: length, masked CRC of the length, data, masked CRC of the data; plain or gzip.

The layout is TensorFlow's (tensorflow/core/lib/io/record_writer.h); the checksum is CRC-32C, rotated and shifted.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from bertwright.formats.errors import ShardError, package, reading

LARGEST_RECORD = 4 * 2**20
"""Maximum number of bytes of a record; a record of 32,768 tokens has less than 1 MiB."""
_GZIP = b"\x1f\x8b"
_HEADER = struct.Struct("<QI")
_CHECKSUM = struct.Struct("<I")


def is_tfrecord(file: Path) -> bool:
    """Whether `file` starts with a record, judged by the checksum of the first length."""
    with reading(file), open_records(file) as handle:
        try:
            head = handle.read(_HEADER.size)
        except (gzip.BadGzipFile, EOFError):  # gzip of something else, or a damaged file
            return False
    if len(head) < _HEADER.size:
        return False
    size, checksum = _HEADER.unpack(head)
    # The format has no magic number, but other files rarely start with a valid checksum.
    return bool(size <= LARGEST_RECORD and checksum == masked_crc(head[:8]))


def read_records(file: Path) -> Iterator[bytes]:
    """Yield the records of a file, each checked. Damage raises `ShardError`, which names the record."""
    number = 0
    with reading(file), open_records(file) as handle:
        while head := handle.read(_HEADER.size):
            if len(head) < _HEADER.size:
                raise ShardError(file, f"record {number:,} is cut off")
            size, checksum = _HEADER.unpack(head)
            if checksum != masked_crc(head[:8]):
                raise ShardError(file, f"the length of record {number:,} does not match its checksum")
            # A valid checksum proves nothing: a hostile file has one too.
            if size > LARGEST_RECORD:
                raise ShardError(
                    file, f"record {number:,} has {size:,} bytes; at most {LARGEST_RECORD:,} are supported"
                )
            data = handle.read(size + _CHECKSUM.size)
            if len(data) < size + _CHECKSUM.size:
                raise ShardError(file, f"record {number:,} is cut off")
            if _CHECKSUM.unpack(data[size:])[0] != masked_crc(data[:size]):
                raise ShardError(file, f"record {number:,} does not match its checksum")
            yield data[:size]
            number += 1


def framed(record: bytes) -> bytes:
    """Return a record with its framing, as stored in a file."""
    length = struct.pack("<Q", len(record))
    return b"".join([length, _CHECKSUM.pack(masked_crc(length)), record, _CHECKSUM.pack(masked_crc(record))])


def masked_crc(data: bytes) -> int:
    """Return TensorFlow's masked CRC-32C of `data` (tensorflow/core/lib/hash/crc32c.h)."""
    crc: int = package("google_crc32c").value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def open_records(file: Path) -> BinaryIO:
    """Open the file for reading, decompressed if it is gzip."""
    with open(file, "rb") as handle:
        compressed = handle.read(len(_GZIP)) == _GZIP
    return cast(BinaryIO, gzip.open(file, "rb")) if compressed else open(file, "rb")
