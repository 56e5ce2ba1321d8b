"""TFRecord framing (length, masked CRC of the length, data, masked CRC of the data; plain or gzip), and its messages.

The layout is TensorFlow's (tensorflow/core/lib/io/record_writer.h); the checksum is CRC-32C, rotated and shifted.

A record is the part of tensorflow.Example that BERT's builders use (tensorflow/core/example/{example,feature}.proto):

    Example   { features: 1 }          Features { map<string, Feature> feature: 1 }
    Feature   { bytes_list: 1 | float_list: 2 | int64_list: 3 }          each list { repeated value: 1 }

Lists are read packed or unpacked, and written packed, as TensorFlow does. Unknown fields are skipped. Integers are
Protocol Buffers varints (encoding.md, "Base 128 Varints"); the integers of many lists are decoded at once.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from bertwright.core.checksums import masked_crc
from bertwright.core.protocol_buffers import BYTES, fields, fields_of
from bertwright.formats.errors import ShardError, reading

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


def frame(record: bytes) -> bytes:
    """Return a record with its framing, as stored in a file."""
    length = struct.pack("<Q", len(record))
    return b"".join([length, _CHECKSUM.pack(masked_crc(length)), record, _CHECKSUM.pack(masked_crc(record))])


def open_records(file: Path) -> BinaryIO:
    """Open the file for reading, decompressed if it is gzip."""
    with open(file, "rb") as handle:
        compressed = handle.read(len(_GZIP)) == _GZIP
    return cast(BinaryIO, gzip.open(file, "rb")) if compressed else open(file, "rb")


_FLOATS, _INTEGERS = 2, 3
_LONGEST = 10
_SEVEN = np.uint64(7)


def parse(record: bytes) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return the features of an Example by name: integer lists as encoded varints, float lists as 4-byte values.

    Raises `ValueError` when the record is not an Example.
    """
    integers: dict[str, bytes] = {}
    floats: dict[str, bytes] = {}
    for features in fields_of(record, 1):
        for entry in fields_of(features, 1):
            parts = dict(fields(entry))
            for kind, message in fields(parts.get(2, b"")):
                lists = integers if kind == _INTEGERS else floats
                if kind in (_INTEGERS, _FLOATS):
                    lists[parts.get(1, b"").decode()] = b"".join(fields_of(message, 1))
    return integers, floats


def unparse(features: dict[str, tuple[bool, bytes]]) -> bytes:
    """Encode an Example from named lists, each given as (whether it holds floats, its packed values)."""
    entries = []
    for name, (is_float, values) in features.items():
        feature = _message(_FLOATS if is_float else _INTEGERS, _message(1, values))
        # A map is encoded as repeated messages with a key and a value.
        entries.append(_message(1, _message(1, name.encode()) + _message(2, feature)))
    return _message(1, b"".join(entries))


def decode_varints(data: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Decode the N integers in `data` [bytes]; returns the values [N] and the index of the last byte of each [N].

    Raises `ValueError` when an integer is malformed.
    """
    last = np.flatnonzero(data < 0x80)
    if len(data) and (not len(last) or last[-1] != len(data) - 1):
        raise ValueError("an integer is truncated")
    first = np.concatenate([[0], last[:-1] + 1]) if len(last) else last
    sizes = last - first + 1
    if sizes.max(initial=0) > _LONGEST:
        raise ValueError(f"an integer has more than {_LONGEST} bytes")
    values = np.zeros(len(last), np.uint64)
    for byte in range(sizes.max(initial=0)):
        longer = sizes > byte
        values[longer] |= (data[first[longer] + byte] & 0x7F).astype(np.uint64) << np.uint64(7 * byte)
    return values.view(np.int64), last


def encode_varints(values: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Encode the integers `values` [N]; returns [bytes], and how many bytes each takes [N] (1 to 10; negatives 10)."""
    # Negative integers are written as the unsigned integers with the same bits.
    rest = values.astype(np.int64).view(np.uint64)
    sizes = np.ones(len(rest), np.int64)
    beyond = rest >> _SEVEN
    while beyond.any():
        sizes += beyond != 0
        beyond = beyond >> _SEVEN
    starts = np.cumsum(sizes) - sizes
    data = np.zeros(int(sizes.sum()), np.uint8)
    for byte in range(sizes.max(initial=0)):
        longer = sizes > byte
        more = np.where(sizes[longer] > byte + 1, 0x80, 0)
        data[starts[longer] + byte] = (rest[longer] >> np.uint64(7 * byte) & np.uint64(0x7F)).astype(np.uint8) | more
    return data, sizes


def _message(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | BYTES]) + _varint_bytes(len(content)) + content


def _varint_bytes(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])
