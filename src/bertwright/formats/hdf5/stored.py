"""Reads and decompresses the bytes of an HDF5 dataset without libhdf5.

libhdf5 only provides the locations of chunks. With damaged files, its own reading code has overrun memory, looped
forever and allocated whatever size was declared. Here every location is compared with the file size, and a chunk must
decompress to exactly its size. A chunk that was never written is an error, because no builder omits one.
"""

from __future__ import annotations

import mmap
import zlib
from itertools import product
from math import prod
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bertwright.formats.errors import ShardError

GZIP, SHUFFLE = 1, 2


class Mapped:
    """The memory-mapped bytes of a file; use in a `with` statement."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __enter__(self) -> Self:
        with open(self.file, "rb") as opened:
            self.bytes = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bytes.close()

    def part(self, begin: int, size: int) -> bytes:
        """Return `size` bytes from `begin` on. Raises `ShardError` if the file does not have them."""
        self.check(begin, size)
        return self.bytes[begin : begin + size]

    def check(self, begin: int, size: int) -> None:
        """Raise `ShardError` if the file does not have `size` bytes from `begin` on."""
        if not 0 <= begin <= begin + size <= len(self.bytes):
            raise ShardError(
                self.file, f"{size:,} bytes at {begin:,} are declared, but the size is {len(self.bytes):,}"
            )


class Stored:
    """A checked dataset whose elements are read as `dtype`."""

    def __init__(self, mapped: Mapped, dataset: Any, dtype: np.dtype[Any]) -> None:
        self.shape: tuple[int, ...] = dataset.shape
        self.chunks: tuple[int, ...] | None = dataset.chunks
        self._mapped, self._dtype = mapped, dtype
        settings = dataset.id.get_create_plist()
        self._filters = [settings.get_filter(number)[0] for number in range(settings.get_nfilters())]
        self._places: dict[tuple[int, ...], tuple[int, int, int]] = {}
        if self.chunks is None:
            self._offset = dataset.id.get_offset() if dataset.size else 0
            # A compact dataset is stored in the header, which only libhdf5 can read.
            if self._offset is None:
                raise ShardError(mapped.file, f"{dataset.name} is stored inside its header, which is not supported")
        else:
            dataset.id.chunk_iter(self._note)

    def __len__(self) -> int:
        return self.shape[0]

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Return the rows `start` to `stop` (clipped to the dataset): [rows], or [rows, width] for a matrix."""
        stop = min(stop, len(self))
        values = np.zeros((stop - start, *self.shape[1:]), self._dtype)
        if self.chunks is None:
            # Without chunks, the values are contiguous, row after row.
            row = values[:1].nbytes if len(values) else 0
            stored = self._mapped.part(self._offset + start * row, values.nbytes)
            return np.frombuffer(stored, self._dtype).reshape(values.shape)
        starts = [start // self.chunks[0] * self.chunks[0], *(0 for _ in self.shape[1:])]
        stops = [stop, *self.shape[1:]]
        for corner in product(*map(range, starts, stops, self.chunks)):
            chunk = self._chunk(corner)[max(start - corner[0], 0) :]
            first = max(corner[0] - start, 0)
            inside = zip((first, *corner[1:]), chunk.shape, strict=True)
            room = values[tuple(slice(begin, begin + size) for begin, size in inside)]
            room[...] = chunk[tuple(slice(0, size) for size in room.shape)]
        return values

    def _note(self, info: Any) -> None:
        self._places[info.chunk_offset] = info.byte_offset, info.size, info.filter_mask

    def _chunk(self, corner: tuple[int, ...]) -> NDArray[Any]:
        if corner not in self._places:
            raise ShardError(self._mapped.file, f"the chunk at {corner} is missing")
        begin, size, skipped = self._places[corner]
        stored = self._mapped.part(begin, size)
        room = prod(self.chunks or ()) * self._dtype.itemsize
        # Undo the filters in reverse order.
        for number in reversed(range(len(self._filters))):
            # A writer may skip a filter for a chunk that it did not make smaller.
            if skipped >> number & 1:
                continue
            if self._filters[number] == GZIP:
                inflate = zlib.decompressobj()
                # One extra byte is enough to detect a chunk that is too long, without decompressing all of it.
                stored = inflate.decompress(stored, room + 1)
                if not inflate.eof:
                    raise ShardError(self._mapped.file, f"the chunk at {corner} is damaged")
            elif self._filters[number] == SHUFFLE and len(stored) % self._dtype.itemsize == 0:
                stored = np.frombuffer(stored, np.uint8).reshape(self._dtype.itemsize, -1).T.tobytes()
        if len(stored) != room:
            raise ShardError(self._mapped.file, f"the chunk at {corner} has {len(stored):,} bytes, not {room:,}")
        return np.frombuffer(stored, self._dtype).reshape(self.chunks or ())
