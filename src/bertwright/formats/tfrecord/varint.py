"""Protocol Buffers' variable-length integers (encoding.md, "Base 128 Varints"), many at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_LONGEST = 10
_SEVEN = np.uint64(7)


def decode(data: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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


def encode(values: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """[bytes] of the integers `values` [N], and [N] how many each takes (1 to 10; negative ones 10)."""
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
