"""The Arrow stream files of a tokenised data set saved with Hugging Face `datasets` (`save_to_disk`).

`input_ids` holds the whole sequence with its special tokens. Optional: `attention_mask` (where it ends),
`token_type_ids` (segments), `labels` (original ids at predicted positions, -100 elsewhere: static masks) and
`next_sentence_label` (as in transformers' BertForPreTraining). Other columns are not read. Rows of running text are
token documents rather than examples; `read_documents` reads them as such.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.examples.formats.arrow_checks import CONTINUED, open_stream
from bertwright.examples.formats.columns import Place, instances_of
from bertwright.examples.formats.errors import ShardError, package, reading
from bertwright.examples.formats.format import Facts, Shape
from bertwright.examples.formats.instances import Instances, Ints, ends, stretches
from bertwright.examples.formats.whole import whole_file

NOT_PREDICTED = -100
_AT_ONCE = 2**20
"""Most tokens that are decoded at once, about."""
_LABEL = "next_sentence_label"


def without_caches(files: Iterable[Path]) -> Iterator[Path]:
    """`files` without the Arrow files beside a saved data set that are not of it: `map` caches its results there,
    `shuffle` its indices, and `state.json` says what is of it.
    """
    listed = cache(_listed)
    return (file for file in files if file.suffix != ".arrow" or not (of := listed(file.parent)) or file.name in of)


def _listed(folder: Path) -> frozenset[str]:
    """The files of the data set saved in `folder`; none where it does not say."""
    try:
        return frozenset(entry["filename"] for entry in json.loads((folder / "state.json").read_bytes())["_data_files"])
    except (OSError, ValueError, KeyError, TypeError):
        return frozenset()


def facts(file: Path) -> Facts | None:
    """As `Format.facts`."""
    with reading(file), open(file, "rb") as handle:
        if handle.read(len(CONTINUED)) != CONTINUED:
            return None
    with open_stream(file) as stream:
        if "input_ids" not in stream.schema.names:
            raise ShardError(file, "it has no column input_ids: it is not tokenised")
        return Facts("datasets", Shape(None, None, "labels" in stream.schema.names), sum(map(len, stream)))


def read(file: Path, vocabulary: Sequence[str] | None = None) -> Iterator[Instances]:
    """As `Format.read`. A row without `token_type_ids` is one segment, without `next_sentence_label` it has none."""
    first = 0
    with open_stream(file) as stream:
        for batch in stream:
            batch.validate(full=True)
            for start, stop in stretches(_lengths(Place(file, first, None), batch, "input_ids"), _AT_ONCE):
                block = batch.slice(start, stop - start)
                yield _decoded(Place(file, first, vocabulary), block)
                first += len(block)


def read_documents(file: Path, vocabulary_size: int | None = None) -> Iterator[list[NDArray[np.int64]]]:
    """The rows as token documents of one sentence each, without padding and, where `special_tokens_mask` tells, without
    special tokens. A damaged file, or an id outside the vocabulary, is a `ShardError`.
    """
    first = 0
    with open_stream(file) as stream:
        for batch in stream:
            batch.validate(full=True)
            place = Place(file, first, None)
            ids, whole = _runs(place, batch, "input_ids")
            kept, _ = _kept(place, batch, whole)
            if "special_tokens_mask" in batch.schema.names:
                kept = kept & (_beside(place, batch, "special_tokens_mask", whole) == 0)
            if len(ids) and (ids.min() < 0 or (vocabulary_size is not None and ids.max() >= vocabulary_size)):
                raise ShardError(file, f"an id near row {first:,} is outside the vocabulary")
            cuts = ends(kept)[ends(whole)]
            yield from ([sentence] for sentence in np.split(ids[kept], cuts[1:-1]) if len(batch))
            first += len(batch)


def write(file: Path, blocks: Iterator[Instances], shape: Shape, vocabulary: Sequence[str] | None = None) -> int:
    """As `Format.write`, one record batch per block; `datasets.Dataset.from_file` and `load_dataset("arrow")` read it.

    The vocabulary is not needed.
    """
    pa = package("pyarrow")
    runs = pa.list_(pa.int32())
    fields = [("input_ids", runs), ("token_type_ids", pa.list_(pa.int8())), (_LABEL, pa.int64())]
    schema = pa.schema([*fields, ("labels", runs)] if shape.static else fields)
    written = 0
    with whole_file(file) as temporary, pa.OSFile(str(temporary), "wb") as sink, pa.ipc.new_stream(sink, schema) as out:
        for block in blocks:
            labels = np.full(len(block.token_ids), NOT_PREDICTED, np.int32)
            labels[block.predicted] = block.labels
            columns = {"input_ids": block.token_ids, "token_type_ids": block.segment_ids, "labels": labels}
            offsets = pa.array(block.cu_seqlens, pa.int32())
            arrays = [
                pa.array(block.next_sentence_labels, pa.int64())
                if field.name == _LABEL
                else pa.ListArray.from_arrays(offsets, pa.array(columns[field.name]))
                for field in schema
            ]
            out.write_batch(pa.record_batch(arrays, schema=schema))
            written += len(block)
    return written


def _decoded(place: Place, batch: Any) -> Instances:
    names = batch.schema.names
    ids, whole = _runs(place, batch, "input_ids")
    kept, lengths = _kept(place, batch, whole)
    cu_seqlens = ends(lengths)
    segments = _beside(place, batch, "token_type_ids", whole)[kept] if "token_type_ids" in names else 0 * ids[kept]
    labels = _beside(place, batch, "labels", whole)[kept] if "labels" in names else 0 * ids[kept] + NOT_PREDICTED
    predicted = np.flatnonzero(labels != NOT_PREDICTED)
    rows = np.searchsorted(cu_seqlens, predicted, side="right") - 1
    return instances_of(
        place,
        (ids[kept], lengths),
        segments,
        (predicted - cu_seqlens[rows], np.bincount(rows, minlength=len(lengths)).astype(np.int64)),
        labels[predicted],
        _whole_numbers(place, batch, _LABEL) if _LABEL in names else np.full(len(lengths), -1),
    )


def _kept(place: Place, batch: Any, whole: Ints) -> tuple[NDArray[np.bool_], Ints]:
    """Which values of input_ids are no padding, and the lengths of the examples without it."""
    if "attention_mask" not in batch.schema.names:
        return np.ones(int(whole.sum()), bool), whole
    mask = _beside(place, batch, "attention_mask", whole) != 0
    cu = ends(whole)
    lengths = np.diff(ends(mask)[cu])
    if (mask != (np.arange(len(mask)) - np.repeat(cu[:-1], whole) < np.repeat(lengths, whole))).any():
        raise ShardError(place.file, f"near example {place.first_row:,}: attention_mask is not ones before zeros")
    return mask, lengths


def _runs(place: Place, batch: Any, name: str) -> tuple[NDArray[np.int64], Ints]:
    lengths, values = _lengths(place, batch, name), batch.column(name).flatten()
    if values.null_count:
        raise ShardError(place.file, f"{name} near example {place.first_row:,} has gaps (null)")
    return values.to_numpy().astype(np.int64), lengths


def _lengths(place: Place, batch: Any, name: str) -> Ints:
    """The lengths of the lists in a column, once it is known to hold lists of integers."""
    types = package("pyarrow").types
    column = batch.column(name)
    kind = column.type
    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    if not lists or not types.is_integer(kind.value_type):
        raise ShardError(place.file, f"{name} holds {kind}, not lists of integers")
    if column.null_count:
        raise ShardError(place.file, f"{name} near example {place.first_row:,} has gaps (null)")
    lengths: Ints = package("pyarrow.compute").list_value_length(column).to_numpy().astype(np.int64)
    return lengths


def _beside(place: Place, batch: Any, name: str, lengths: Ints) -> NDArray[np.int64]:
    values, found = _runs(place, batch, name)
    if len(wrong := np.flatnonzero(found != lengths)):
        raise ShardError(place.file, f"example {place.first_row + wrong[0]:,}: {name} is not as long as input_ids")
    return values


def _whole_numbers(place: Place, batch: Any, name: str) -> NDArray[np.int64]:
    column = batch.column(name)
    if column.null_count or not package("pyarrow").types.is_integer(column.type):
        raise ShardError(
            place.file, f"{name} near example {place.first_row:,} holds {column.type} or gaps, not integers"
        )
    values: NDArray[np.int64] = column.to_numpy().astype(np.int64)
    return values
