"""Reads runs of integers (HDF5's variable-length types) from the global heaps that hold their values.

A run is stored as a descriptor of 16 bytes: length, address of a heap, and number of an object in that heap (HDF5 File
Format Specification, §IV.B). A heap is a list of objects (§III.E "Global Heap"). In a hostile file heaps may overlap
and objects may be shared, so that a megabyte unfolds to gigabytes. libhdf5 writes neither: heaps are disjoint and each
run has an object of its own. So neither heaps nor runs may have more bytes in all than the file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.examples.instances import Ints
from bertwright.formats.columns import MAX_LENGTH, Ragged
from bertwright.formats.errors import ShardError, package
from bertwright.formats.hdf5.reader import Mapped, Stored

_HEAP, _OBJECT = struct.Struct("<4sB3xQ"), struct.Struct("<HHxxxxQ")
_OBJECTS_KEPT = 2**18
"""Number of objects whose places are kept, a few hundred bytes each."""


class Heaps:
    """The heaps of a file, shared by all its columns. Addresses count from `base`, the end of the user block."""

    def __init__(self, mapped: Mapped, base: int) -> None:
        self._mapped, self._base = mapped, base
        self._places: dict[int, dict[int, tuple[int, int]]] = {}
        self._kept = 0
        self._sizes: dict[int, int] = {}
        self._in_all = 0
        self._declared = 0

    def declare(self, key: str, size: int) -> None:
        """Count `size` bytes of runs of the column `key`. Raises `ShardError` if that is more than the file can hold
        with the runs counted before."""
        self._declared += size
        if self._declared > (there := len(self._mapped.bytes)):
            fault = f"{key} declares runs of {self._declared:,} bytes with the columns before it; it has {there:,}"
            raise ShardError(self._mapped.file, f"{fault}. Runs share their values, which no builder does")

    def content(self, key: str, heap: int, number: int, size: int) -> bytes:
        """Return the object `number` of the heap at byte `heap`. Raises `ShardError` if it has not `size` bytes."""
        if heap not in self._places:
            if self._kept > _OBJECTS_KEPT:
                # Consecutive rows use the same heaps, so earlier heaps are not needed again.
                self._places.clear()
                self._kept = 0
            self._places[heap] = dict(self._objects(key, heap))
            self._kept += len(self._places[heap])
        begin, length = self._places[heap].get(number, (0, -1))
        if length != size:
            fault = f"{key}: the heap at byte {heap:,} has no object {number:,} of {size:,} bytes"
            raise ShardError(self._mapped.file, fault)
        return self._mapped.part(begin, size)

    def _objects(self, key: str, heap: int) -> Iterator[tuple[int, tuple[int, int]]]:
        """Yield number, position in the file and length of each object of a heap."""
        begin = self._base + heap
        signature, version, size = _HEAP.unpack(self._mapped.part(begin, _HEAP.size))
        if (signature, version) != (b"GCOL", 1):
            raise ShardError(self._mapped.file, f"{key}: there is no heap at byte {heap:,}")
        self._mapped.check(begin, size)
        self._take(key, heap, size)
        at, end = begin + _HEAP.size, begin + size
        while at + _OBJECT.size <= end:
            number, _, length = _OBJECT.unpack_from(self._mapped.bytes, at)
            if number == 0:  # free space to the end
                return
            at += _OBJECT.size
            yield number, (at, min(length, end - at))
            # Objects are padded to 8 bytes.
            at += -(-length // 8) * 8

    def _take(self, key: str, heap: int, size: int) -> None:
        """Count a heap once, however often it is read."""
        self._in_all += size - self._sizes.get(heap, 0)
        self._sizes[heap] = size
        if self._in_all > (there := len(self._mapped.bytes)):
            fault = f"{key}: heaps up to the one at byte {heap:,} declare {self._in_all:,} bytes; it has {there:,}"
            raise ShardError(self._mapped.file, f"{fault}. They overlap, which no builder's do")


_DESCRIPTOR = np.dtype([("length", "<u4"), ("heap", "<u8"), ("object", "<u4")])
_AT_ONCE = 2**16
"""Number of descriptors read at once to sum their lengths."""


class Runs:
    """A checked dataset of runs, named `key`; the datasets of a file share its `heaps`.

    Raises `ShardError` if its runs, with those of the datasets before it, have more bytes than the file.
    """

    def __init__(self, mapped: Mapped, dataset: Any, key: str, heaps: Heaps) -> None:
        if dataset.id.get_type().get_size() != _DESCRIPTOR.itemsize:
            raise ShardError(
                mapped.file, f"{key} stores variable-length data in an unusual layout, which is not supported"
            )
        self._mapped, self._key, self._heaps = mapped, key, heaps
        self._element = package("h5py").check_vlen_dtype(dataset.dtype)
        self._descriptors = Stored(mapped, dataset, _DESCRIPTOR)
        for start in range(0, len(self), _AT_ONCE):
            _, lengths = self._checked(start, start + _AT_ONCE)
            heaps.declare(key, int(lengths.sum()) * self._element.itemsize)

    def __len__(self) -> int:
        return len(self._descriptors)

    def rows(self, start: int, stop: int) -> Ragged:
        """Return the runs in the rows `start` to `stop` (clipped to the dataset): values [T] and lengths [rows]."""
        descriptors, lengths = self._checked(start, stop)
        sizes = lengths * self._element.itemsize
        places = zip(descriptors["heap"].tolist(), descriptors["object"].tolist(), sizes.tolist(), strict=True)
        # A run without values has no object.
        data = b"".join(self._heaps.content(self._key, *place) for place in places if place[2])
        return np.frombuffer(data, self._element).astype(np.int64), lengths

    def _checked(self, start: int, stop: int) -> tuple[NDArray[Any], Ints]:
        """Return the descriptors of the rows `start` to `stop`, and the lengths of their runs."""
        descriptors = self._descriptors.rows(start, stop)
        lengths = descriptors["length"].astype(np.int64)
        # A damaged descriptor may declare up to 2^32 values.
        if len(wrong := np.flatnonzero(lengths > MAX_LENGTH)):
            row, length = start + int(wrong[0]), int(lengths[wrong[0]])
            fault = f"{self._key}, row {row:,}, declares {length:,} values; at most {MAX_LENGTH:,} are supported"
            raise ShardError(self._mapped.file, fault)
        return descriptors, lengths
