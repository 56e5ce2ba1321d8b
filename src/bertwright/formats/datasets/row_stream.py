"""Reads ranges of the rows of a file one after the other, so that no part of the file is decoded twice.

Parquet cannot be read from any row on: each range would decode its row group from the beginning, which takes quadratic
time where a file is one row group. So the batches of the file read last stay open, one file per process, and the next
range goes on from there. A range further back opens the file anew, at the row group that holds its first row.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.formats.datasets.row_batches import open_batches
from bertwright.formats.errors import reading
from bertwright.formats.parquet_checks import Batches

_kept: list[_Stream] = []
"""The stream of the last range, if the file has more rows."""


@dataclass
class _Stream:
    """The batches of a file that are not yet read."""

    version: tuple[Path, int, int, int, int]
    """The file, its inode, its size and when it was written: a file that is replaced is opened anew. And the process,
    because Arrow's threads do not survive a fork."""
    batches: Iterator[tuple[int, Any]]
    at: int
    """Number of the next row."""
    pending: Any = None
    """The rest of the batch at row `at`."""


def rows_of(file: Path, first: int, stop: int) -> Iterator[tuple[int, Any]]:
    """Yield the rows `first` to `stop` of a file in Arrow batches, each with the number of its first row."""
    stream = _opened(file, first)
    while stream.at < stop:
        if stream.pending is None and (following := next(stream.batches, None)) is not None:
            stream.at, stream.pending = following
        if stream.pending is None:
            return
        here, batch = stream.at, stream.pending
        end = min(stop - here, len(batch))
        # What lies before the range is passed over.
        begin = min(max(first - here, 0), end)
        stream.at, stream.pending = here + end, batch.slice(end) if end < len(batch) else None
        if begin < end:
            yield here + begin, batch.slice(begin, end - begin)
    # Only after a range that was read to its end: after an error the file is closed.
    _kept.append(stream)


def _opened(file: Path, first: int) -> _Stream:
    """Return the stream that was kept if it is of this file and not beyond the row `first`; else a new one."""
    with reading(file):
        stat = os.stat(file)
    version = (file, stat.st_ino, stat.st_size, stat.st_mtime_ns, os.getpid())
    while _kept:
        stream = _kept.pop()
        if stream.version == version and stream.at <= first:
            return stream
    return _Stream(version, _batches(file, first), first)


def _batches(file: Path, first: int) -> Iterator[tuple[int, Any]]:
    """Yield the batches of a file, for Parquet from the row group with the row `first` on."""
    with open_batches(file) as batches:
        at, stream = batches.from_row(first) if isinstance(batches, Batches) else (0, batches)
        for batch in stream:
            yield at, batch
            at += len(batch)
