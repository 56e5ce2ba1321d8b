"""The complete lines of a file that another process appends to, cuts or replaces, without reading it twice.

A training cuts rows when it resumes, by a new file with the first lines of the old one. The reader finds by bisection
how many of its lines are still there, comparing checksums of single lines, and reads on from there.
"""

from __future__ import annotations

import os
import zlib
from array import array
from pathlib import Path
from typing import NamedTuple

LONGEST = 2**23
"""Bytes after which a line without an end is taken for one: it is damaged."""


class Change(NamedTuple):
    """What has happened to a file since it was last read."""

    kept: int
    """Number of lines of before that are still there; the others are gone."""
    lines: list[bytes]
    """New lines, with their ends."""


class Tail:
    """The lines of one file. Not for several threads at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.generation = 0
        """Increases whenever lines have gone."""
        self.size = 0
        """Size of the file when it was last read, in bytes."""
        self._ends, self._sums = array("q"), array("L")
        self._seen: tuple[int, int, int] | None = None

    def __len__(self) -> int:
        """The number of lines read."""
        return len(self._ends)

    @property
    def read_bytes(self) -> int:
        """How much of the file is in its lines; less than `size` while there is more to read."""
        return self._ends[-1] if self._ends else 0

    def read(self, most: int = LONGEST) -> Change:
        """What is new, at most about `most` bytes of it; call again while there is more. Nothing of a half-written last
        line, nor of a file that is not there."""
        try:
            # A descriptor: a file that is replaced meanwhile stays the same one.
            descriptor = os.open(self.path, os.O_RDONLY)
        except OSError:
            self.size, self._seen = 0, None
            return Change(self._cut(0), [])
        try:
            return self._read(descriptor, most)
        except OSError:  # a file system that is gone for a moment, or a folder
            return Change(len(self), [])
        finally:
            os.close(descriptor)

    def line(self, number: int) -> bytes:
        """One of the lines, from the file; empty if it has changed since it was read."""
        try:
            with self.path.open("rb") as file:
                found = self._bytes(file.fileno(), number)
        except OSError:
            return b""
        return found if zlib.crc32(found) == self._sums[number] else b""

    def _read(self, descriptor: int, most: int) -> Change:
        status = os.fstat(descriptor)
        now, self.size = (status.st_ino, status.st_size, status.st_mtime_ns), status.st_size
        if now == self._seen:
            return Change(len(self), [])
        kept, start = self._cut(self._intact(descriptor)), self.read_bytes
        data = os.pread(descriptor, most, start)
        if b"\n" not in data and len(data) == most < LONGEST:  # a line longer than was asked for
            data = os.pread(descriptor, LONGEST, start)
        lines = data.splitlines(keepends=True) if b"\r" not in data else _split(data)
        if lines and not lines[-1].endswith(b"\n") and len(lines[-1]) < LONGEST:
            lines.pop()
        for line in lines:
            start += len(line)
            self._ends.append(start)
            self._sums.append(zlib.crc32(line))
        # Only when all of it has been read, or the next call would find nothing new.
        self._seen = now if len(data) < most or status.st_size == start else None
        return Change(kept, lines)

    def _intact(self, descriptor: int) -> int:
        """How many lines are still what they were, of a file that is changed at its end only."""

        def same(number: int) -> bool:
            found = self._bytes(descriptor, number)
            return len(found) > 0 and zlib.crc32(found) == self._sums[number]

        if not len(self) or same(len(self) - 1):
            return len(self)
        low, high = 0, len(self) - 1  # the first `low` lines are, line `high` is not
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if same(middle) else (low, middle)
        return low

    def _bytes(self, descriptor: int, number: int) -> bytes:
        start = self._ends[number - 1] if number else 0
        return os.pread(descriptor, self._ends[number] - start, start)

    def _cut(self, kept: int) -> int:
        if kept < len(self):
            self.generation += 1
            del self._ends[kept:], self._sums[kept:]
        return kept


def _split(data: bytes) -> list[bytes]:
    """Lines that end with \\n only: bytes.splitlines also ends them at \\r."""
    *whole, rest = data.split(b"\n")
    return [line + b"\n" for line in whole] + ([rest] if rest else [])
