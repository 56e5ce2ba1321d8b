"""Reads a table in LevelDB's format, as TensorFlow writes the index of a checkpoint (table_format.md of LevelDB;
tensorflow/core/lib/io/format.cc).

A table ends with a footer: the places of two blocks, padded to 40 bytes, and a magic number. The second of these blocks
is the index, whose values are the places of the data blocks. A block has a trailer with its kind of compression and its
checksum. In a block, a key is stored as the number of bytes that it shares with the key before it, and the rest. Ends
of such runs, "restarts", are listed at the end of the block for searches, and are not needed to read all of it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from bertwright.core.checksums import masked_crc
from bertwright.core.files import naming
from bertwright.core.protocol_buffers import varint

MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
"""The last 8 bytes of a table."""
_FOOTER = 48
_TRAILER = struct.Struct("<BI")
_RESTART = struct.Struct("<I")
_UNCOMPRESSED, _SNAPPY = 0, 1
_LONGEST_KEY = 4096
"""Maximum number of bytes of a key: a short entry may stand for a long key, so that a small file could fill memory."""


def read_table(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and the values of a table, in ascending order of keys.

    Raises `ValueError`, which says what is wrong, if `data` is not a complete table or does not match its checksums.
    """
    if not is_table(data):
        raise ValueError("it does not end like a table of LevelDB")
    at = len(data) - _FOOTER
    _, at = _place(data, at)
    index, _ = _place(data, at)
    end, last = 0, None
    for _, value in _entries(_block(data, index)):
        (start, size), _ = _place(value, 0)
        # Blocks are written one after the other. If one could be named twice, a small file would have no end.
        if start < end:
            raise ValueError(f"the block at byte {start:,} begins before the end of the one before it")
        end = start + size
        for key, content in _entries(_block(data, (start, size))):
            if last is not None and key <= last:
                raise ValueError(f"its keys are not in order: {key!r} comes after {last!r}")
            yield key, content
            last = key


def is_table(data: bytes) -> bool:
    """Whether a file that ends with `data` may be a table."""
    return len(data) >= _FOOTER and data.endswith(MAGIC)


def is_table_file(path: Path) -> bool:
    """Whether a file ends like a table."""
    with naming(path), path.open("rb") as handle:
        size = handle.seek(0, 2)
        handle.seek(max(0, size - _FOOTER))
        return is_table(handle.read())


def _place(data: bytes, at: int) -> tuple[tuple[int, int], int]:
    """Return the place of a block (first byte, size), which is stored at byte `at`, and the index after it."""
    start, at = varint(data, at)
    size, at = varint(data, at)
    return (start, size), at


def _block(data: bytes, place: tuple[int, int]) -> bytes:
    start, size = place
    if start + size + _TRAILER.size > len(data) - _FOOTER:
        raise ValueError(f"it has no block of {size:,} bytes at byte {start:,}")
    kind, checksum = _TRAILER.unpack_from(data, start + size)
    if masked_crc(data[start : start + size + 1]) != checksum:
        raise ValueError(f"the block at byte {start:,} does not match its checksum")
    if kind != _UNCOMPRESSED:
        name = "snappy" if kind == _SNAPPY else f"method {kind}"
        raise ValueError(f"its index is compressed ({name}), which is not read; save it with TensorFlow 1.2 or later")
    return data[start : start + size]


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    if len(block) < _RESTART.size:
        raise ValueError("a block is too short")
    (restarts,) = _RESTART.unpack(block[-_RESTART.size :])
    end = len(block) - _RESTART.size * (restarts + 1)
    if end < 0:
        raise ValueError(f"a block of {len(block):,} bytes cannot have {restarts:,} restarts")
    at, key = 0, b""
    while at < end:
        shared, at = varint(block, at)
        rest, at = varint(block, at)
        size, at = varint(block, at)
        if shared > len(key) or at + rest + size > end:
            raise ValueError("an entry of a block is longer than the block, or shares more than the key before it has")
        if shared + rest > _LONGEST_KEY:
            raise ValueError(f"a key has {shared + rest:,} bytes; at most {_LONGEST_KEY:,} are supported")
        key = key[:shared] + block[at : at + rest]
        at += rest + size
        yield key, block[at - size : at]
