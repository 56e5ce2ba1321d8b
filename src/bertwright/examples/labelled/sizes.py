"""The number and sizes of the labelled texts in a file, in a fraction of a second; estimated if the file is large.

A .parquet is read by columns. Of any other large file, a sample is parsed, and the lines of the rest are only measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.errors import DataError
from bertwright.corpus.characters import compose
from bertwright.examples.labelled.config import Columns, LabelledTexts
from bertwright.examples.labelled.read import columns_of, is_missing, texts_of
from bertwright.examples.labelled.records import open_parquet, records
from bertwright.examples.problems import Problems

SAMPLE = 10_000
"""Records that are parsed of a file."""
MOST = 2**27
"""Bytes of text that are read of a .parquet."""
_ROWS = 2**12
"""Rows of a .parquet that are in memory at a time."""


@dataclass(frozen=True)
class TextSizes:
    """The labelled texts of a file; the two texts of a pair count as one."""

    number: int
    """Texts in the file; estimated if only a part was read."""
    read: NDArray[np.int64]
    """[N] bytes in UTF-8 of each text that was read."""
    longest: int | None
    """Bytes of the longest text, or of the longest line of the file; None if not known."""
    sequences: NDArray[np.int64] | None = None
    """[N] sequences of each example, if it has several with texts of that size."""


def text_sizes(file: Path, texts: LabelledTexts) -> TextSizes:
    """The sizes of the texts in a file; raises `DataError` and `MissingExtraError` as `read_texts` does, but does not
    look at all records."""
    return _of_columns(file, texts) if file.suffix == ".parquet" else _of_records(file, texts)


def _of_records(file: Path, texts: LabelledTexts) -> TextSizes:
    # A .json is a single value, which is always parsed whole; an .arrow has no lines to measure.
    most = None if file.suffix in (".json", ".arrow") else SAMPLE
    some = list(islice(records(file, texts.without_header, texts.numbered), most))
    found = texts_of(file, some, texts, Problems())
    read = np.array([len(first.encode()) + len(second.encode()) for first, second, _ in found], np.int64)
    longest = int(read.max(initial=0))
    if len(some) != most:
        return TextSizes(len(read), read, longest)
    with file.open("rb") as lines:
        sizes = np.fromiter(map(len, lines), np.int64)
    # A text has no more bytes than its line, unless it has several lines, as in some .csv.
    longest = max(longest, int(sizes.max()))
    return TextSizes(round(len(read) * len(sizes) / some[-1][0].number), read, longest)


def _of_columns(file: Path, texts: LabelledTexts) -> TextSizes:
    rows, size, parts = 0, 0, [np.zeros(0, np.int64)]
    with open_parquet(file) as table:
        named = {compose(name): name for name in table.schema_arrow.names}
        columns = columns_of(file, list(named), texts)
        for batch in table.iter_batches(_ROWS, columns=[named[name] for name in columns.names], use_threads=False):
            batch.validate(full=True)
            batch = batch.rename_columns(list(map(compose, batch.schema.names)))
            rows += batch.num_rows
            parts.append(_of_batch(file, batch, columns, texts))
            size += int(parts[-1].sum())
            if size > MOST:
                break
        total = table.metadata.num_rows
    read = np.concatenate(parts)
    longest = int(read.max(initial=0)) if rows == total else None
    return TextSizes(round(len(read) * total / max(rows, 1)), read, longest)


def _of_batch(file: Path, batch: Any, columns: Columns, texts: LabelledTexts) -> NDArray[np.int64]:
    """[N] bytes of the texts of a `RecordBatch` that have a label."""
    kept = np.ones(batch.num_rows, np.bool_)
    for name in columns.labels or (columns.label,):
        kept &= [not is_missing(value, texts, bool(columns.labels)) for value in batch[name].to_pylist()]
    sizes = np.zeros(batch.num_rows, np.int64)
    for name in columns.texts:
        if batch[name].null_count:
            kept &= [value is not None for value in batch[name].to_pylist()]
        sizes += _bytes(file, batch[name])
    found: NDArray[np.int64] = sizes[kept]
    return found


def _bytes(file: Path, column: Any) -> NDArray[np.int64]:
    """[N] bytes of the values of a column, 0 where one is missing; `DataError` if they are not text."""
    # Where the values begin is stored. (Importing pyarrow.compute would take longer than everything else here.)
    if kind := {"string": np.int32, "large_string": np.int64}.get(str(column.type)):
        begins = np.frombuffer(column.buffers()[1], kind)[column.offset : column.offset + len(column) + 1]
        return np.diff(begins).astype(np.int64)
    values = column.to_pylist()
    wrong = [value for value in values if not isinstance(value, str | None)]
    if wrong:
        raise DataError(f"{file} has {str(wrong[0])[:40]!r} where a text is expected. Correct it.")
    return np.array([len((value or "").encode()) for value in values], np.int64)
