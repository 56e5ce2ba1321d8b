"""Parquet files with a column of texts."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bertwright.core.work_split import WorkSplit
from bertwright.corpus.config import SourceConfig
from bertwright.corpus.sources.columns import PIECE_BYTES, arrow, damaged_table, rows, slice_pieces, wanted
from bertwright.corpus.sources.file import ExtractJob, File, Piece
from bertwright.corpus.sources.format import Article, SourceFormat

# Rows in memory at a time.
_ROWS = 256
# Most pieces of a row group. Skipping a row means decoding it, so each row is decoded 32 times on average.
_MOST_CUTS = 64


def matches(head: bytes) -> bool:
    """Whether the first bytes are those of a Parquet file."""
    return head.startswith(b"PAR1")


def splits(
    file: File, config: SourceConfig, number: int, first: int, folder: Path, share: WorkSplit
) -> Iterator[Piece]:
    """Yield pieces that are runs of rows; small row groups are combined, large ones divided."""
    with _open(file.path) as table:
        slices = list(_slices(table.metadata))
    bounds = [0, *itertools.accumulate(length for length, _ in slices)]
    return slice_pieces(file, number, first, [size for _, size in slices], bounds)


def documents(job: ExtractJob, counts: Counter[str], state: dict[str, Any]) -> Iterator[Article]:
    """Yield the documents in the rows of the piece."""
    with _open(job.file.path) as table:
        columns = wanted(job, table.schema_arrow)
        yield from rows(job, _between(table, job.piece.start, job.piece.stop, columns), job.piece.start, counts, state)


def _slices(about: Any) -> Iterator[tuple[int, int]]:
    """Yield (rows, bytes) of each row group, or of the equal slices of a row group larger than a piece."""
    for group in map(about.row_group, range(about.num_row_groups)):
        rows, size = group.num_rows, group.total_byte_size
        cuts = min(max(1, size // PIECE_BYTES), _MOST_CUTS, max(1, rows))
        for i in range(cuts):
            yield rows * (i + 1) // cuts - rows * i // cuts, size // cuts


def _between(table: Any, start: int, stop: int, columns: list[str]) -> Iterator[Any]:
    """Yield the record batches of the rows from `start` to `stop` of the file."""
    about = table.metadata
    sizes = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
    begins = [0, *itertools.accumulate(sizes)]
    groups_read = [i for i, (first, end) in enumerate(itertools.pairwise(begins)) if first < stop and end > start]
    at = begins[groups_read[0]] if groups_read else stop
    # Without pyarrow's threads: each processor already has a worker.
    for batch in table.iter_batches(_ROWS, row_groups=groups_read, columns=columns, use_threads=False):
        if at >= stop:
            return
        low, high = max(start - at, 0), min(stop - at, len(batch))
        if low < high:
            yield batch.slice(low, high - low)
        at += len(batch)


def columns(file: Path) -> list[str]:
    """The names of the file's columns."""
    with _open(file) as table:
        return list(table.schema_arrow.names)


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    pyarrow = arrow(path)
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path, memory_map=True) as table:
            yield table
    except (pyarrow.ArrowException, OSError) as error:
        raise damaged_table(path, error) from error


FORMAT = SourceFormat(
    "parquet",
    matches,
    splits,
    documents,
    is_text=False,
    keys=frozenset({"text"}),
    bytes_per_text=0.5,
    columns=columns,
)
