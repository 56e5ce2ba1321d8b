"""TFRecord files of Google's and MLCommons' create_pretraining_data.py: seven features, static masks. Does not need
TensorFlow.

`masked_lm_weights` is 1 for a prediction and 0 for padding. (Intel's reader detects padding by position 0 instead,
which is equivalent for every file that the builders write.) Files whose name ends in `.gz` are compressed.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.errors import DataError
from bertwright.core.files import atomic_file
from bertwright.examples.instances import Instances, ends
from bertwright.formats.columns import (
    Place,
    check_widths,
    instances_of_padded,
    must_fit,
    pad,
    padded_columns,
    prefix_lengths,
)
from bertwright.formats.errors import ShardError
from bertwright.formats.format import FileInfo, Format, Shape
from bertwright.formats.tfrecord.records import (
    decode_varints,
    encode_varints,
    frame,
    is_tfrecord,
    parse,
    read_records,
    unparse,
)

_TOKENS = ("input_ids", "input_mask", "segment_ids")
_PREDICTIONS = ("masked_lm_positions", "masked_lm_ids")
_LABEL, _WEIGHTS = "next_sentence_labels", "masked_lm_weights"
# With larger blocks, half a megabyte of long records took three gigabytes of memory.
_BLOCK = 128
"""Number of records decoded at once; a small file may hold many long records."""


def facts(file: Path) -> FileInfo | None:
    """As `Format.facts`; the number of examples is not known without reading."""
    if not is_tfrecord(file):
        return None
    length, predictions = _widths(file, next(read_records(file)))
    # There is no index, so counting the records would require reading them all.
    return FileInfo("tfrecord", Shape(length, predictions, static=True), None)


def read(file: Path, vocabulary: Sequence[str] | None = None) -> Iterator[Instances]:
    """As `Format.read`."""
    records, first, widths = read_records(file), 0, None
    while block := list(islice(records, _BLOCK)):
        widths = widths or _widths(file, block[0])
        yield _decode(Place(file, first, vocabulary), block, *widths)
        first += len(block)


def write(file: Path, blocks: Iterator[Instances], shape: Shape, vocabulary: Sequence[str] | None = None) -> int:
    """As `Format.write`; the vocabulary is not needed."""
    if not shape.length or not shape.predictions or not shape.static:
        raise DataError(
            f"{file}: TFRecord needs a length, a maximum number of predictions, and masks; {shape} was given."
        )
    written = 0
    with atomic_file(file) as temporary, open(temporary, "wb") as plain:
        # No name and no time in the gzip header, so that equal examples give equal bytes.
        packed = gzip.GzipFile("", "wb", fileobj=plain, mtime=0) if file.suffix == ".gz" else None
        for block in blocks:
            must_fit(block, file, written, shape.length, shape.predictions)
            # Encode in the same block size: padded rows of 64-bit integers are far larger than their records.
            for start in range(0, len(block), _BLOCK):
                part = block.take(slice(start, start + _BLOCK))
                (packed or plain).write(b"".join(map(frame, _encode(part, shape.length, shape.predictions))))
            written += len(block)
        if packed:
            # Write the end of the stream before the file gets its final name.
            packed.close()
    return written


def _widths(file: Path, record: bytes) -> tuple[int, int]:
    """Return how many tokens and predictions the records of a file have room for, according to its first record."""
    integers, _ = _features(file, 0, record)
    place = Place(file, 0, None)
    length, predictions = (
        _matrix(place, key, [integers[key]]).shape[1] for key in ("input_ids", "masked_lm_positions")
    )
    check_widths(file, length, predictions)
    return length, predictions


def _features(file: Path, number: int, record: bytes) -> tuple[dict[str, bytes], dict[str, bytes]]:
    try:
        integers, floats = parse(record)
    except ValueError as error:
        raise ShardError(file, f"record {number:,} is not a tensorflow.Example: {error}") from error
    missing = [key for key in (*_TOKENS, *_PREDICTIONS, _LABEL) if key not in integers]
    missing += [_WEIGHTS] if _WEIGHTS not in floats else []
    if missing:
        raise ShardError(file, f"record {number:,} lacks {', '.join(missing)}: it is not a BERT example")
    return integers, floats


def _decode(place: Place, records: list[bytes], length: int, predictions: int) -> Instances:
    parsed = [_features(place.file, place.first_row + row, record) for row, record in enumerate(records)]
    widths = dict.fromkeys(_TOKENS, length) | dict.fromkeys(_PREDICTIONS, predictions) | {_LABEL: 1}
    columns = {key: _matrix(place, key, [integers[key] for integers, _ in parsed], widths[key]) for key in widths}
    floats = [values[_WEIGHTS] for _, values in parsed]
    _same_width(place, _WEIGHTS, np.array([len(values) / 4 for values in floats]), predictions)
    weights = np.frombuffer(b"".join(floats), "<f4").reshape(-1, predictions)
    if not ((weights == 0) | (weights == 1)).all():
        raise ShardError(place.file, f"{_WEIGHTS} near record {place.first_row:,} has values other than 0 and 1")
    return instances_of_padded(place, columns | {_LABEL: columns[_LABEL][:, 0]}, prefix_lengths(place, weights))


def _matrix(place: Place, key: str, lists: list[bytes], width: int | None = None) -> NDArray[np.int64]:
    """Decode lists of varints to rows [N, width]; each must have `width` values (None: as many as the first)."""
    data = np.frombuffer(b"".join(lists), np.uint8)
    cuts = ends([len(values) for values in lists])
    try:
        values, last = decode_varints(data)
        # Lists are joined for speed, so an integer cut off at the end of one would continue in the next.
        if (data[cuts[1:][np.diff(cuts) > 0] - 1] >= 0x80).any():
            raise ValueError("an integer is truncated")
    except ValueError as error:
        raise ShardError(place.file, f"{key} near record {place.first_row:,}: {error}") from error
    counts = np.diff(np.searchsorted(last, cuts))
    width = int(counts[0]) if width is None else width
    _same_width(place, key, counts, width)
    return values.reshape(len(lists), width)


def _encode(block: Instances, length: int, predictions: int) -> Iterator[bytes]:
    columns = padded_columns(block, length, predictions)
    lists = {key: _pack_rows(column.reshape(len(block), -1)) for key, column in columns.items()}
    weights = pad(np.ones(len(block.positions), np.float32), block.cu_predictions, predictions, "<f4")
    for row in range(len(block)):
        features = {key: (False, rows[row]) for key, rows in lists.items()}
        yield unparse(features | {_WEIGHTS: (True, weights[row].tobytes())})


def _pack_rows(matrix: NDArray[Any]) -> list[bytes]:
    """Return each row as the bytes of a packed list."""
    data, sizes = encode_varints(matrix.ravel())
    cuts = [0, *np.cumsum(sizes.reshape(matrix.shape).sum(axis=1)).tolist()]
    stream = data.tobytes()
    return [stream[start:stop] for start, stop in pairwise(cuts)]


def _same_width(place: Place, key: str, counts: NDArray[Any], width: int) -> None:
    if len(wrong := np.flatnonzero(counts != width)):
        row, count = place.first_row + wrong[0], counts[wrong[0]]
        raise ShardError(place.file, f"record {row:,}: {key} has {count:,} values, not {width:,}")


FORMAT = Format(
    "tfrecord",
    facts,
    read,
    write,
    lambda file: f"part-{file.of}{'.gz' if file.compress else ''}",
    padded=True,
    static_only=True,
    compressible=True,
)
