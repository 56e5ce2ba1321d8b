"""Opens HDF5 files that may be hostile: accepts only what the known builders write.

HDF5 can refer to other files (external, soft and virtual links, external storage), call filter plug-ins and declare any
size. Here, datasets must be hard links, contiguous or chunked, use only the filters gzip and shuffle, hold integers or
runs of integers, and be no larger than the file could hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bertwright.formats.errors import ShardError, package, reading
from bertwright.formats.hdf5.stored import GZIP, SHUFFLE, Mapped, Stored

MAGIC = b"\x89HDF\r\n\x1a\n"
LARGEST_CHUNK = 64 * 2**20
"""Maximum number of bytes of a chunk; h5py itself chooses at most 1 MiB."""
_MOST_COMPRESSED = 1040
"""Maximum expansion factor of deflate (1,032), with some margin."""
_LARGE, _MOST_HOLES = 2**28, 64
"""Bytes above which a file is checked for holes; maximum ratio of its length to its size on the disk."""
_FILTERS = {GZIP: "gzip", SHUFFLE: "shuffle"}


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
