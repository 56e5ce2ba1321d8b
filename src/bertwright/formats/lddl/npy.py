"""The column masked_lm_positions: each value is the content of a .npy file, version 1 (numpy.lib.format)."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from bertwright.formats.columns import Place
from bertwright.formats.errors import ShardError

_VERSION_1 = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(rb"\{'descr': '<u2', 'fortran_order': False, 'shape': \((\d+),\), \} *\n")


def positions(place: Place, row: int, stored: bytes) -> NDArray[np.uint16]:
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


def stored(positions: NDArray[np.integer]) -> bytes:
    """The content of a .npy file with these positions [P]."""
    text = f"{{'descr': '<u2', 'fortran_order': False, 'shape': ({len(positions)},), }}"
    header = text.ljust(117).encode() + b"\n"
    return b"".join([_VERSION_1, len(header).to_bytes(2, "little"), header, positions.astype("<u2").tobytes()])
