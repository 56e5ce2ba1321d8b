"""Reads runs of integers (HDF5's variable-length types).

A run is stored as a descriptor of 16 bytes: length, address of a heap, and number of an object in that heap (HDF5 File
Format Specification, §IV.B).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.examples.instances import Ints
from bertwright.formats.columns import Ragged
from bertwright.formats.errors import ShardError, package
from bertwright.formats.hdf5.heaps import Heaps
from bertwright.formats.hdf5.stored import Mapped, Stored
from bertwright.formats.instance_checks import MAX_LENGTH

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
