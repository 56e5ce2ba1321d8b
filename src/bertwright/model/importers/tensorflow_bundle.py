"""Reads TensorFlow's checkpoints of format V2, "tensor bundles", without TensorFlow.

The layout is that of tensorflow/core/util/tensor_bundle/tensor_bundle.cc and of these messages:

    PREFIX.index                  a table of LevelDB: "" to BundleHeaderProto, a variable's name to BundleEntryProto
    PREFIX.data-00000-of-00002    the bytes of variables, in the byte order of the machine that wrote them

    BundleHeaderProto { num_shards: 1, endianness: 2 (0 little, 1 big), version: 3 { min_consumer: 2 } }
    BundleEntryProto { dtype: 1, shape: 2 { dim: 2 { size: 1 } }, shard_id: 3, offset: 4, size: 5, crc32c: 6,
                       slices: 7 }
    TensorSliceProto { extent: 1 { start: 1, length: 2 } }           without a length, all of the dimension

A partitioned variable has an entry that lists its slices. Each slice has an entry of its own, whose key is made from
the name and the slice (tensorflow/core/util/saved_tensor_slice_util.cc).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertwright.core.checksums import masked_crc
from bertwright.core.files import naming, read_bytes
from bertwright.core.protocol_buffers import fields, fields_of, varint
from bertwright.model.importers.leveldb_table import read_table

_MOST_INDEX, _MOST_MESSAGE, _MOST_ENTRIES = 4 * 2**20, 2**18, 50_000
"""Maximum sizes of an index and of a message in bytes, and number of variables and slices. The index of a BERT-large
with its moments has 46 kB."""
_MOST_DIMENSIONS, _LONGEST_DIMENSION = 8, 2**48
_VERSION = 1
"""The version of the format that is read here; a file says which version a reader must know at least."""
_WHOLE = -1
"""The length of a slice along a dimension of which it has all."""
_DTYPES = {1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 8: "complex64", 9: "int64"}
_DTYPES |= {10: "bool", 14: "bfloat16", 17: "uint16", 18: "complex128", 19: "float16", 22: "uint32", 23: "uint64"}
_DTYPES |= {7: "string", 20: "resource", 21: "variant"}
"""The names of torch for TensorFlow's numbers of dtypes (tensorflow/core/framework/types.proto)."""
WIDTHS = {"float64": 8, "int64": 8, "uint64": 8, "float32": 4, "int32": 4, "uint32": 4, "float16": 2, "bfloat16": 2}
WIDTHS |= {"int16": 2, "uint16": 2, "uint8": 1, "int8": 1, "bool": 1}
"""Bytes per element of the dtypes that are read."""

Slice = tuple[tuple[int, int], ...]
"""The start and the length of a part of a variable along each dimension."""


@dataclass(frozen=True)
class Entry:
    """A variable, or a slice of one."""

    dtype: str
    shape: tuple[int, ...]
    shard: int
    """The number of the data file."""
    offset: int
    size: int
    checksum: int
    slices: tuple[Slice, ...]
    """The slices of a partitioned variable, which have the bytes; () if it is stored whole."""

    @property
    def end(self) -> int:
        """The offset after the last byte."""
        return self.offset + self.size


class Bundle:
    """The variables of a checkpoint. Opening it reads the index alone.

    Raises `ValueError`, which says what is wrong, and `OSError` if a file cannot be read.
    """

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        self.index = prefix.with_name(f"{prefix.name}.index")
        table = read_table(read_bytes(self.index, _MOST_INDEX))
        header = next(table, None)
        if header is None or header[0] != b"":
            raise ValueError("it has no header")
        self.shards, self._big_endian = _header(header[1])
        self._all: dict[bytes, Entry] = {}
        for key, value in table:
            self._all[key] = _entry(key, value, self.shards)
            if len(self._all) > _MOST_ENTRIES:
                raise ValueError(f"it has more than {_MOST_ENTRIES:,} entries")

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        """The variables by name; slices of one are not among them."""
        return {key.decode(): entry for key, entry in self._all.items() if not key.startswith(b"\0")}

    @cached_property
    def data_files(self) -> Mapping[int, Path]:
        """The files that hold variables, by number."""
        numbers = sorted({entry.shard for entry in self._all.values() if not entry.slices})
        names = {n: f"{self.prefix.name}.data-{n:05d}-of-{self.shards:05d}" for n in numbers}
        return {number: self.prefix.with_name(name) for number, name in names.items()}

    def check_data(self) -> None:
        """Check that each variable has bytes of its own in a file that is there, and slices that make it up."""
        sizes = {number: file.stat().st_size for number, file in self.data_files.items()}
        ends = dict.fromkeys(sizes, 0)
        stored = ((e.shard, e.offset, e.end, key) for key, e in self._all.items() if not e.slices)
        for number, start, end, key in sorted(stored):
            if start < ends[number] or end > sizes[number]:
                reason = f"which has {sizes[number]:,}" if end > sizes[number] else "where another variable is"
                where = f"bytes {start:,} to {end:,} of {self.data_files[number].name}"
                raise ValueError(f"{_shown(key)} is said to be at {where}, {reason}")
            ends[number] = end
        for name, entry in self.entries.items():
            # A slice that is listed twice would let a small file stand for a large variable.
            volume = sum(math.prod(self._slice(name, entry, part).shape) for part in {*entry.slices})
            if entry.slices and volume != math.prod(entry.shape):
                raise ValueError(f"the slices of {name} have {volume:,} of its {math.prod(entry.shape):,} elements")

    def read(self, name: str) -> NDArray[np.uint]:
        """Return a variable, [its shape], each element as the unsigned integer with the same bits in the byte order of
        this machine."""
        entry = self.entries[name]
        if entry.dtype not in WIDTHS:
            raise ValueError(f"{name} is of {entry.dtype}, which is not read; these are: {', '.join(WIDTHS)}")
        if not entry.slices:
            return self._read(name, entry)
        array = np.empty(entry.shape, f"u{WIDTHS[entry.dtype]}")
        filled = np.zeros(entry.shape, bool)
        for part in entry.slices:
            stored = self._slice(name, entry, part)
            where = tuple(slice(start, start + size) for (start, _), size in zip(part, stored.shape, strict=True))
            array[where], filled[where] = self._read(name, stored), True
        if not filled.all():
            raise ValueError(f"the slices of {name} overlap, and do not make up all of it")
        return array

    def _read(self, name: str, entry: Entry) -> NDArray[np.uint]:
        file = self.data_files[entry.shard]
        with naming(file), file.open("rb") as handle:
            handle.seek(entry.offset)
            data = handle.read(entry.size)
        if len(data) < entry.size:
            raise ValueError(f"{file.name} ends within {name}")
        if masked_crc(data) != entry.checksum:
            raise ValueError(f"{name} in {file.name} does not match its checksum")
        order = ">" if self._big_endian else "<"
        stored = np.frombuffer(data, f"{order}u{WIDTHS[entry.dtype]}").reshape(entry.shape)
        return stored.astype(f"u{WIDTHS[entry.dtype]}", copy=False)

    def _slice(self, name: str, whole: Entry, part: Slice) -> Entry:
        """Return the entry of a slice, which must lie in its variable."""
        stored = self._all.get(slice_key(name, part))
        if stored is None:
            raise ValueError(f"a slice of {name} is missing")
        if len(part) != len(whole.shape) or stored.dtype != whole.dtype or stored.slices:
            raise ValueError(f"a slice of {name} is not a part of it")
        shape = tuple(n if size == _WHOLE else size for (_, size), n in zip(part, whole.shape, strict=True))
        if stored.shape != shape or any(
            start < 0 or start + size > n for (start, _), size, n in zip(part, shape, whole.shape, strict=True)
        ):
            raise ValueError(f"a slice of {name} is not a part of it")
        return stored


def slice_key(name: str, part: Slice) -> bytes:
    """Return the key of a slice: 0, the name, the number of dimensions, and the start and length along each, in
    TensorFlow's "ordered code", whose bytes sort like the values."""
    text = name.encode().replace(b"\0", b"\0\xff")  # a byte 255, which would need the same, is not in UTF-8
    numbers = b"".join(_ordered(number) for extent in part for number in extent)
    return b"\0" + text + b"\0\1" + bytes([1, len(part)]) + numbers


def _ordered(number: int) -> bytes:
    # n bytes hold 7n - 1 bits and a sign: the first n bits say how many bytes there are, and are inverted below zero.
    bits = (~number if number < 0 else number).bit_length()
    size = bits // 7 + 1
    return (number % (1 << 8 * size) ^ ((1 << size) - 1) << 7 * size).to_bytes(size, "big")


def _header(data: bytes) -> tuple[int, bool]:
    """Return the number of data files, and whether the bytes of elements are in big-endian order."""
    found = dict(fields(data))
    needed = dict(fields(found.get(3, b""))).get(2)
    if needed is not None and _signed(needed) > _VERSION:
        raise ValueError(f"it is of version {_signed(needed)} of the format; version {_VERSION} is read")
    shards = _signed(found.get(1, b"\0"))
    if not 0 < shards < 100_000:
        raise ValueError(f"it cannot have {shards:,} data files")
    return shards, _signed(found.get(2, b"\0")) == 1


def _entry(key: bytes, data: bytes, shards: int) -> Entry:
    if len(data) > _MOST_MESSAGE:
        raise ValueError(f"the entry of {_shown(key)} has {len(data):,} bytes; at most {_MOST_MESSAGE:,} are supported")
    found = dict(fields(data))
    number = _signed(found.get(1, b"\0"))
    dtype = _DTYPES.get(number, f"dtype {number}")
    shape = tuple(_dimensions(found.get(2, b"")))
    if len(shape) > _MOST_DIMENSIONS or not all(0 <= size < _LONGEST_DIMENSION for size in shape):
        sizes = ", ".join(map(str, shape[:_MOST_DIMENSIONS]))
        raise ValueError(f"{_shown(key)} cannot have {len(shape):,} dimensions of the sizes {sizes}")
    shard, offset, size = (_signed(found.get(number, b"\0")) for number in (3, 4, 5))
    slices = tuple(tuple(_extents(part)) for part in fields_of(data, 7))
    if not slices and not (0 <= shard < shards and offset >= 0 and size >= 0):
        raise ValueError(
            f"{_shown(key)} is said to be {size:,} bytes at byte {offset:,} of file {shard:,} of {shards:,}"
        )
    if not slices and dtype in WIDTHS and size != math.prod(shape) * WIDTHS[dtype]:
        raise ValueError(f"{_shown(key)} has {size:,} bytes, which are not {shape} of {dtype}")
    return Entry(dtype, shape, shard, offset, size, int.from_bytes(found.get(6, b""), "little"), slices)


def _dimensions(shape: bytes) -> Iterator[int]:
    for dimension in fields_of(shape, 2):
        yield _signed(dict(fields(dimension)).get(1, b"\0"))


def _extents(part: bytes) -> Iterator[tuple[int, int]]:
    for extent in fields_of(part, 1):
        found = dict(fields(extent))
        yield _signed(found.get(1, b"\0")), _signed(found[2]) if 2 in found else _WHOLE


def _signed(data: bytes) -> int:
    """Return an integer of a message; negative ones are written as the unsigned integers with the same 64 bits."""
    value, _ = varint(data, 0)
    return value - (1 << 64) if value >> 63 else value


def _shown(key: bytes) -> str:
    return key.decode(errors="backslashreplace").strip("\0")
