"""Reads runs of integers (HDF5's variable-length types).

A run is stored as a descriptor of 16 bytes: length, address of a heap, and number of an object in that heap. A heap is
a list of objects (HDF5 File Format Specification, §III.E "Global Heap", §IV.B).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from bertwright.formats.columns import Ragged
from bertwright.formats.errors import ShardError, package
from bertwright.formats.hdf5.stored import Mapped, Stored
from bertwright.formats.instance_checks import MAX_LENGTH

_DESCRIPTOR = np.dtype([("length", "<u4"), ("heap", "<u8"), ("object", "<u4")])
_HEAP, _OBJECT = struct.Struct("<4sB3xQ"), struct.Struct("<HHxxxxQ")
_HEAPS_KEPT = 4096


class Runs:
    """A checked dataset of runs, named `key`; `heaps` is a cache that the datasets of a file share."""

    def __init__(self, mapped: Mapped, dataset: Any, key: str, heaps: dict[int, dict[int, bytes]]) -> None:
        if dataset.id.get_type().get_size() != _DESCRIPTOR.itemsize:
            raise ShardError(
                mapped.file, f"{key} stores variable-length data in an unusual layout, which is not supported"
            )
        self._mapped, self._key, self._heaps = mapped, key, heaps
        self._element = package("h5py").check_vlen_dtype(dataset.dtype)
        # Addresses count from the end of the user block, which may precede the HDF5 data.
        self._base = int(dataset.file.userblock_size)
        self._descriptors = Stored(mapped, dataset, _DESCRIPTOR)

    def __len__(self) -> int:
        return len(self._descriptors)

    def rows(self, start: int, stop: int) -> Ragged:
        """Return the runs in the rows `start` to `stop` (clipped to the dataset): values [T] and lengths [rows]."""
        descriptors = self._descriptors.rows(start, stop)
        lengths = descriptors["length"].astype(np.int64)
        # A damaged descriptor may declare up to 2^32 values.
        if len(wrong := np.flatnonzero(lengths > MAX_LENGTH)):
            row, length = start + int(wrong[0]), int(lengths[wrong[0]])
            fault = f"{self._key}, row {row:,}, declares {length:,} values; at most {MAX_LENGTH:,} are supported"
            raise ShardError(self._mapped.file, fault)
        sizes = lengths * self._element.itemsize
        places = zip(descriptors["heap"].tolist(), descriptors["object"].tolist(), sizes.tolist(), strict=True)
        # A run without values has no object.
        data = b"".join(self._object(*place) for place in places if place[2])
        return np.frombuffer(data, self._element).astype(np.int64), lengths

    def _object(self, heap: int, number: int, size: int) -> bytes:
        if heap not in self._heaps:
            if len(self._heaps) >= _HEAPS_KEPT:
                # Consecutive rows use the same heaps, so earlier heaps are not needed again.
                self._heaps.clear()
            self._heaps[heap] = dict(self._objects(heap))
        content = self._heaps[heap].get(number, b"")
        if len(content) != size:
            fault = f"{self._key}: the heap at byte {heap:,} has no object {number:,} of {size:,} bytes"
            raise ShardError(self._mapped.file, fault)
        return content

    def _objects(self, heap: int) -> Iterator[tuple[int, bytes]]:
        """Yield number and content of each object of a heap."""
        signature, version, size = _HEAP.unpack(self._mapped.part(self._base + heap, _HEAP.size))
        if (signature, version) != (b"GCOL", 1):
            raise ShardError(self._mapped.file, f"{self._key}: there is no heap at byte {heap:,}")
        content, at = self._mapped.part(self._base + heap, size), _HEAP.size
        while at + _OBJECT.size <= size:
            number, _, length = _OBJECT.unpack_from(content, at)
            if number == 0:  # free space to the end
                return
            at += _OBJECT.size
            yield number, content[at : at + length]
            # Objects are padded to 8 bytes.
            at += -(-length // 8) * 8
