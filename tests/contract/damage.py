"""Damage that a file may have, and what is to come of it whatever the format."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bertwright.formats.errors import ShardError
from bertwright.formats.format import Facts
from bertwright.formats.recognise import facts_of

HEADER = 64
"""Bytes at the beginning of a file that are damaged one by one."""
MAGIC = 4
"""Of these the ones by which every format is known."""


def cuts(size: int) -> list[int]:
    """Where a file of this size is cut off: all over it, and before its last byte."""
    return sorted({*np.linspace(1, size - 1, 24).astype(int).tolist()})


def flipped(whole: bytes) -> Iterator[tuple[int, bytes]]:
    """The file with each byte of its header turned over, and where."""
    for at in range(min(HEADER, len(whole))):
        yield at, whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]


def facts_or_fault(file: Path) -> Facts | None:
    """What a damaged file says of itself; that it is damaged is `ShardError`, and here None too."""
    try:
        return facts_of(file)
    except ShardError as error:
        assert error.file == file
        return None
