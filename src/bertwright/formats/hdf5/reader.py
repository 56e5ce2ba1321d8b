"""Opens HDF5 files that may be hostile, and reads their datasets without libhdf5.

HDF5 can refer to other files (external, soft and virtual links, external storage), call filter plug-ins and declare any
size. Here, datasets must be hard links, contiguous or chunked, use only the filters gzip and shuffle, hold integers or
runs of integers, and be no larger than the file could hold: what the known builders write.

libhdf5 only provides the locations of chunks. With damaged files, its own reading code has overrun memory, looped
forever and allocated whatever size was declared. Here every location is compared with the file size, and a chunk must
decompress to exactly its size. A chunk that was never written is an error, because no builder omits one.
"""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import product
from math import prod
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bertwright.formats.errors import ShardError, package, reading

GZIP, SHUFFLE = 1, 2
MAGIC = b"\x89HDF\r\n\x1a\n"
LARGEST_CHUNK = 64 * 2**20
"""Maximum number of bytes of a chunk; h5py itself chooses at most 1 MiB."""
_MOST_COMPRESSED = 1040
"""Maximum expansion factor of deflate (1,032), with some margin."""
_LARGE, _MOST_HOLES = 2**28, 64
"""Bytes above which a file is checked for holes; maximum ratio of its length to its size on the disk."""
_FILTERS = {GZIP: "gzip", SHUFFLE: "shuffle"}


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


def is_hdf5(file: Path) -> bool:
    """Whether `file` starts with HDF5's magic bytes."""
    with reading(file), open(file, "rb") as handle:
        return handle.read(len(MAGIC)) == MAGIC


@contextmanager
def open_hdf5(file: Path) -> Iterator[Any]:
    """Open `file` with h5py; errors in the body name `file`."""
    h5py = package("h5py")
    _check_holes(file)
    # Some network file systems do not support HDF5's lock, and nothing writes the file at this time.
    with reading(file), h5py.File(file, "r", locking=False) as handle:
        yield handle


def _check_holes(file: Path) -> None:
    """Raise `ShardError` for a large file that is almost all holes: reading its zeros would take hours."""
    with reading(file):
        stat = file.stat()
    stored = 512 * getattr(stat, "st_blocks", 0)  # 0 if the file system does not report it
    if stat.st_size > _LARGE and 0 < stored < stat.st_size // _MOST_HOLES:
        raise ShardError(file, f"it is a sparse file: only {stored:,} of its {stat.st_size:,} bytes are on the disk")


def dataset(file: Path, handle: Any, key: str, dimensions: int, ragged: bool = False) -> Any:
    """Return the dataset `key` with `dimensions` dimensions, after checking that it is harmless; `ragged`: of runs."""
    h5py = package("h5py")
    if key not in handle:
        raise ShardError(file, f"the dataset {key} is missing")
    # A link could point to any file that the user can read.
    if not isinstance(handle.get(key, getlink=True), h5py.HardLink):
        raise ShardError(file, f"{key} is a link, which is not accepted")
    stored = handle[key]
    if not isinstance(stored, h5py.Dataset) or stored.ndim != dimensions:
        raise ShardError(file, f"{key} is not a dataset of {dimensions} dimensions")
    element = h5py.check_vlen_dtype(stored.dtype) if ragged else stored.dtype
    if not isinstance(element, np.dtype) or element.kind not in "iu":
        raise ShardError(file, f"{key} holds {stored.dtype}, not {'runs of ' if ragged else ''}integers")
    _check_storage(file, key, stored)
    return stored


def attributes(handle: Any, names: Iterable[str]) -> dict[bytes, bytes]:
    """Return those attributes of the file among `names` that are single texts of fixed size."""
    stored = {name: handle.attrs.get_id(name) for name in names if name in handle.attrs}
    # Type and size are checked first, because any other value could have any size in memory.
    texts = [name for name, each in stored.items() if each.shape == () and each.dtype.kind == "S"]
    return {name.encode(): bytes(handle.attrs[name]) for name in texts}


def integers(mapped: Mapped, handle: Any, key: str, dimensions: int) -> Stored:
    """Return the values of the integer dataset `key`, after checking that it is harmless."""
    stored = dataset(mapped.file, handle, key, dimensions)
    return Stored(mapped, stored, stored.dtype)


def _check_storage(file: Path, key: str, dataset: Any) -> None:
    h5py = package("h5py")
    settings = dataset.id.get_create_plist()
    layout = settings.get_layout()
    if layout == h5py.h5d.VIRTUAL or settings.get_external_count():
        raise ShardError(file, f"{key} is stored in another file, which is not accepted")
    filters = [settings.get_filter(i)[0] for i in range(settings.get_nfilters())]
    # Any other filter is a plug-in: code that HDF5 loads from a configurable path.
    if unknown := [code for code in filters if code not in _FILTERS]:
        raise ShardError(
            file, f"{key} uses the HDF5 filter {unknown[0]}; only {', '.join(_FILTERS.values())} are supported"
        )
    declared, size = dataset.size * dataset.id.get_type().get_size(), file.stat().st_size
    stored = dataset.id.get_storage_size()
    if layout == h5py.h5d.CHUNKED:
        chunk = dataset.id.get_type().get_size()
        for edge in dataset.chunks:
            chunk *= edge
        # A chunk is decompressed in one piece.
        if chunk > LARGEST_CHUNK:
            raise ShardError(file, f"{key} has chunks of {chunk:,} bytes; at most {LARGEST_CHUNK:,} are supported")
    # A file of kilobytes may declare terabytes, for which memory would be allocated.
    if stored > size or declared > max(stored, 1) * (_MOST_COMPRESSED if GZIP in filters else 1):
        raise ShardError(file, f"{key} declares {declared:,} bytes, but {stored:,} of {size:,} are stored")
