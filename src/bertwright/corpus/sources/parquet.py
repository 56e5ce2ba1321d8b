"""Parquet with a column of texts; row groups are what is read independently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bertwright.corpus.article import Article
from bertwright.corpus.sources.columns import arrow, damaged_table, groups, rows, wanted
from bertwright.corpus.sources.file import File
from bertwright.corpus.sources.job import Job, Piece

_ROWS = 256
"""Rows held at a time."""


def pieces(file: File, source: int, first: int) -> Iterator[Piece]:
    """The pieces of the file, numbered from `first`: row groups, small ones together."""
    with _opened(file.path) as table:
        about = table.metadata
        found = list(groups(about.row_group(i).total_byte_size for i in range(about.num_row_groups)))
    total = sum(size for _, _, size in found) or 1
    for i, (start, stop, size) in enumerate(found):
        yield Piece(source, first + i, start, stop, file.size * size // total, last=i == len(found) - 1)


def articles(job: Job, counts: Counter[str], state: dict[str, Any]) -> Iterator[Article]:
    """The documents of the row groups of the piece."""
    with _opened(job.file.path) as table:
        begin, end = job.piece.start, job.piece.stop
        before = sum(table.metadata.row_group(i).num_rows for i in range(begin))
        columns = wanted(job, table.schema_arrow)
        batches = table.iter_batches(_ROWS, row_groups=range(begin, end), columns=columns, use_threads=False)
        yield from rows(job, batches, before, counts, state)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    pyarrow = arrow(path)
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path, memory_map=True) as table:
            yield table
    except (pyarrow.ArrowException, OSError) as error:
        raise damaged_table(path, error) from error
