"""Ways to damage a file, and the outcome expected of every format."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bertwright.formats.detect import file_info
from bertwright.formats.errors import ShardError
from bertwright.formats.format import FileInfo

HEADER = 64
"""Number of bytes at the start of a file that are damaged one at a time."""
MAGIC = 4
"""The leading bytes among them that identify a format."""


def cuts(size: int) -> list[int]:
    """Lengths to truncate a file of this size to: spread over the file, and one byte before its end."""
    return sorted({*np.linspace(1, size - 1, 24).astype(int).tolist()})


def flipped(whole: bytes) -> Iterator[tuple[int, bytes]]:
    """The file with each byte of its header inverted in turn, and the position of that byte."""
    for at in range(min(HEADER, len(whole))):
        yield at, whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]


def facts_or_fault(file: Path) -> FileInfo | None:
    """The facts that a damaged file reports; None if it reports none or raises `ShardError`."""
    try:
        return file_info(file)
    except ShardError as error:
        assert error.file == file
        return None
