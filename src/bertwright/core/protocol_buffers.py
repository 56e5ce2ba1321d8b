"""Reads messages of Protocol Buffers, of which TensorFlow's files are made, without the library.

The encoding is described in the format's encoding.md ("Message Structure", "Base 128 Varints").
"""

from __future__ import annotations

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types."""
_LARGEST_SHIFT = 63
"""An integer has at most 64 bits, in groups of seven."""


def fields(data: bytes) -> list[tuple[int, bytes]]:
    """The number and the content of each field of a message; an integer is given as its bytes, which `varint` reads.

    Raises `ValueError` if a field is truncated or of an unknown type.
    """
    found, at = [], 0
    while at < len(data):
        tag, at = varint(data, at)
        wire = tag & 7
        if wire == BYTES:
            size, at = varint(data, at)
        elif wire == VARINT:
            size = varint(data, at)[1] - at
        elif wire in (FIXED32, FIXED64):
            size = 4 if wire == FIXED32 else 8
        else:
            raise ValueError(f"wire type {wire} is unknown")
        end = at + size
        if end > len(data):
            raise ValueError("a field is truncated")
        found.append((tag >> 3, data[at:end]))
        at = end
    return found


def fields_of(data: bytes, number: int) -> list[bytes]:
    """The content of each field of a message that has this number."""
    return [content for field, content in fields(data) if field == number]


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The unsigned integer at byte `at`, and the index after its last byte. Raises `ValueError` if it is truncated."""
    value = shift = 0
    while at < len(data):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > _LARGEST_SHIFT:
            raise ValueError("an integer has more than 10 bytes")
    raise ValueError("a field is truncated")
