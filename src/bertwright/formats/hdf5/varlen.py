"""HDF5 as NVIDIA's MLPerf submissions write it: runs of 16-bit integers instead of padded matrices.

There are two variants: one example per row, or several packed into a row (`packed_input_len`, `packed_masked_lm_len`;
positions count from the beginning of the row), which are read as separate examples. Ids above 32,767 overflow 16 bits
in the original builder and become negative; here writing rejects such ids, and reading rejects negative ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.errors import DataError
from bertwright.examples.instances import Instances, Ints
from bertwright.formats.columns import Place, Ragged, instances_of, must_fit
from bertwright.formats.errors import ShardError, package
from bertwright.formats.format import SIZES, FileInfo, Format, Shape
from bertwright.formats.hdf5.heaps import Heaps, Runs
from bertwright.formats.hdf5.reader import Mapped, attributes, dataset, integers, is_hdf5, open_hdf5
from bertwright.formats.hdf5.writer import CHUNK, new_hdf5

DTYPES = {"input_ids": "i2", "segment_ids": "i1", "masked_lm_positions": "i2", "masked_lm_ids": "i2"}
_LABELS = "next_sentence_labels"
_PACKED = ("packed_input_len", "packed_masked_lm_len")
_LARGEST_ID = np.iinfo(np.int16).max
# With larger blocks, half a megabyte of long rows took three gigabytes of memory.
_BLOCK = 128
"""Number of rows read at once; a small file may hold many long rows."""


def facts(file: Path) -> FileInfo | None:
    """As `Format.facts`."""
    if not is_hdf5(file):
        return None
    with open_hdf5(file) as handle:
        if "input_mask" in handle or "input_ids" not in handle:
            return None
        rows = len(dataset(file, handle, "input_ids", 1, ragged=True))
        packed = _PACKED[0] in handle
        shape = Shape.from_metadata(file, attributes(handle, SIZES), static=True)
    # The number of examples in packed rows is known only after reading them.
    return FileInfo("hdf5-varlen", shape, None if packed else rows)


def read(file: Path, vocabulary: Sequence[str] | None = None) -> Iterator[Instances]:
    """As `Format.read`."""
    with open_hdf5(file) as handle, Mapped(file) as mapped:
        packed = _PACKED[0] in handle
        heaps = Heaps(mapped, int(handle.userblock_size))
        keys = [*DTYPES, *((*_PACKED, _LABELS) if packed else ())]
        runs = {key: Runs(mapped, dataset(file, handle, key, 1, ragged=True), key, heaps) for key in keys}
        single = None if packed else integers(mapped, handle, _LABELS, 1)
        rows = len(runs["input_ids"])
        if len(sizes := {rows if single is None else len(single), *map(len, runs.values())}) > 1:
            raise ShardError(file, f"its columns have different numbers of rows, {sorted(sizes)}")
        first = 0
        for start in range(0, rows, _BLOCK):
            place = Place(file, first, vocabulary)
            block = {key: column.rows(start, start + _BLOCK) for key, column in runs.items()}
            if single is None:
                examples = _unpack(place, block)
            else:
                examples = _single(place, block, single.rows(start, start + _BLOCK))
            first += len(examples)
            yield examples


def write(file: Path, blocks: Iterator[Instances], shape: Shape, vocabulary: Sequence[str] | None = None) -> int:
    """As `Format.write`, with one example per row of any length. The vocabulary is not needed."""
    if not shape.static:
        raise DataError(f"{file}: MLPerf's HDF5 holds masks; these examples have none.")
    h5py = package("h5py")
    written = 0
    with new_hdf5(file) as (handle, sink):
        for key, dtype in DTYPES.items():
            runs = h5py.vlen_dtype(np.dtype(dtype))
            handle.create_dataset(key, (0,), runs, maxshape=(None,), chunks=(CHUNK,))
        for name, size in shape.metadata.items():
            handle.attrs[name] = np.bytes_(size)
        handle.create_dataset(_LABELS, (0,), "i1", maxshape=(None,), chunks=(CHUNK,))
        for block in blocks:
            must_fit(block, file, written, shape.length, shape.predictions)
            _check_ids(file, written, block)
            for key, column in _columns(block).items():
                handle[key].resize(written + len(block), axis=0)
                _append(h5py, handle[key], written, column)
            written += len(block)
            sink.check()
    return written


def _append(h5py: Any, dataset: Any, first: int, column: Any) -> None:
    """Write `column` from row `first` on."""
    # Use h5py's low-level API: assigning to a slice fails if all runs have the same length.
    target = dataset.id.get_space()
    target.select_hyperslab((first,), column.shape)
    source = h5py.h5s.create_simple(column.shape)
    dataset.id.write(source, target, column, h5py.h5t.py_create(dataset.dtype))


def _columns(block: Instances) -> dict[str, Any]:
    return {
        "input_ids": _rows(block.token_ids, block.cu_seqlens, "i2"),
        "segment_ids": _rows(block.segment_ids, block.cu_seqlens, "i1"),
        "masked_lm_positions": _rows(block.positions, block.cu_predictions, "i2"),
        "masked_lm_ids": _rows(block.labels, block.cu_predictions, "i2"),
        _LABELS: block.next_sentence_labels,
    }


def _rows(values: Any, cu: Ints, dtype: str) -> Any:
    rows = np.empty(len(cu) - 1, object)
    # One by one: numpy would turn runs of equal length into a matrix. And `split` returns one piece for no rows.
    for row, run in enumerate(np.split(values.astype(dtype), cu[1:-1]) if len(rows) else []):
        rows[row] = run
    return rows


def _check_ids(file: Path, first_row: int, block: Instances) -> None:
    largest = max(block.token_ids.max(initial=0), block.labels.max(initial=0))
    if largest > _LARGEST_ID:
        raise DataError(
            f"{file}: examples from {first_row:,} on hold the id {largest:,}; this format stores signed 16-bit ids, "
            f"up to {_LARGEST_ID:,}. Use the format hdf5, whose ids have 32 bits, or a smaller vocabulary."
        )


def _single(place: Place, block: dict[str, Ragged], next_sentence_labels: NDArray[Any]) -> Instances:
    ids, segments, positions, labels = (block[key] for key in DTYPES)
    _same_lengths(place, ids[1], segments[1])
    _same_lengths(place, positions[1], labels[1])
    return instances_of(place, ids, segments[0], positions, labels[0], next_sentence_labels)


def _unpack(place: Place, block: dict[str, Ragged]) -> Instances:
    ids, segments, positions, labels = (block[key] for key in DTYPES)
    lengths, in_row = block["packed_input_len"]
    counts, counts_in_row = block["packed_masked_lm_len"]
    next_sentence_labels, labels_in_row = block[_LABELS]
    for one, other in ((in_row, counts_in_row), (in_row, labels_in_row)):
        _same_lengths(place, one, other)
    # Lengths are signed in these files, and a negative one would shift all following examples.
    for declared in (lengths, counts):
        _same_lengths(place, declared, np.maximum(declared, 0))
    row = np.repeat(np.arange(len(in_row)), in_row)
    for inner, whole in ((lengths, ids[1]), (lengths, segments[1]), (counts, positions[1]), (counts, labels[1])):
        _same_lengths(place, np.bincount(row, inner, len(whole)).astype(np.int64), whole)
    begin = np.cumsum(lengths) - lengths
    offset = begin - begin[np.repeat(np.cumsum(in_row) - in_row, in_row)] if len(lengths) else begin
    return instances_of(
        place,
        (ids[0], lengths),
        segments[0],
        (positions[0] - np.repeat(offset, counts), counts),
        labels[0],
        next_sentence_labels,
    )


def _same_lengths(place: Place, one: Ints, other: Ints) -> None:
    if len(wrong := np.flatnonzero(one != other)):
        raise ShardError(place.file, f"near example {place.first_row + wrong[0]:,}: columns have different lengths")


# MLPerf's sampler takes files with `part_` in their names.
FORMAT = Format(
    "hdf5-varlen", facts, read, write, lambda file: f"part_{file.of.replace('-', '_')}.hdf5", static_only=True
)
