"""The message tensorflow.Example, as far as BERT's records need it (tensorflow/core/example/{example,feature}.proto).

    Example   { features: 1 }          Features { map<string, Feature> feature: 1 }
    Feature   { bytes_list: 1 | float_list: 2 | int64_list: 3 }          each list { repeated value: 1 }

Lists are read packed and unpacked, and written packed, as TensorFlow does. Unknown fields are skipped. Integers are
Protocol Buffers' variable-length ones (encoding.md, "Base 128 Varints"); those of many lists are decoded at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FLOATS, _INTEGERS = 2, 3
_LONGEST = 10
_SEVEN = np.uint64(7)


def parse(record: bytes) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The features of an Example by name: lists of integers as their varints, lists of floats as their 4-byte values.

    ValueError when the record is not an Example.
    """
    integers: dict[str, bytes] = {}
    floats: dict[str, bytes] = {}
    try:
        for features in _numbered(record, 1):
            for entry in _numbered(features, 1):
                parts = dict(_fields(entry))
                for kind, message in _fields(parts.get(2, b"")):
                    lists = integers if kind == _INTEGERS else floats
                    if kind in (_INTEGERS, _FLOATS):
                        lists[parts.get(1, b"").decode()] = b"".join(_numbered(message, 1))
    except IndexError:
        raise ValueError("a field is cut off") from None
    return integers, floats


def unparse(features: dict[str, tuple[bool, bytes]]) -> bytes:
    """An Example of named lists, each (whether of floats, its packed values)."""
    entries = []
    for name, (is_float, values) in features.items():
        feature = _message(_FLOATS if is_float else _INTEGERS, _message(1, values))
        # A map is a list of messages of a key and a value.
        entries.append(_message(1, _message(1, name.encode()) + _message(2, feature)))
    return _message(1, b"".join(entries))


def decode_varints(data: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """[N] the integers in `data` [bytes], and [N] the index of the last byte of each; ValueError when one is broken."""
    last = np.flatnonzero(data < 0x80)
    if len(data) and (not len(last) or last[-1] != len(data) - 1):
        raise ValueError("an integer is cut off")
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
    """[bytes] of the integers `values` [N], and [N] how many each takes (1 to 10; negative ones 10)."""
    # Negative integers are written as the unsigned ones with the same bits.
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


def _numbered(data: bytes, number: int) -> list[bytes]:
    return [content for field, content in _fields(data) if field == number]


def _fields(data: bytes) -> list[tuple[int, bytes]]:
    """Number and content (a varint as its bytes) of each field; IndexError when the last is cut off."""
    fields, at = [], 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == _BYTES:
            size, at = _varint(data, at)
        elif wire == _VARINT:
            size = _varint(data, at)[1] - at
        elif wire in (_FIXED32, _FIXED64):
            size = 4 if wire == _FIXED32 else 8
        else:
            raise ValueError(f"wire type {wire} is unknown")
        end = at + size
        if end > len(data):
            raise IndexError
        fields.append((tag >> 3, data[at:end]))
        at = end
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The integer at byte `at`, and where it ends."""
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value, shift = byte & 0x7F, 7
    while byte >= 0x80 and shift < 70:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift += 7
    return value, at + 1


def _message(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | _BYTES]) + _varint_bytes(len(content)) + content


def _varint_bytes(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])
