"""Opening a Parquet file that may be hostile: how much it may unfold to is bounded before anything is read.

A column that repeats one value takes next to nothing in the file. So there is a most of
tokens for the size of a file, far above what texts need; the metadata says it of lists, and of texts they are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.formats.errors import ShardError, package, reading

MAGIC = b"PAR1"
LARGEST_GROUP = 4 * 2**30
"""Most uncompressed bytes that a row group may declare."""
_FREE, _PER_BYTE = 2**23, 16
"""Tokens that any file may hold, and how many more for each of its bytes: compressed text has less than one."""
_AT_ONCE = 2**20
"""Values of a column that are decoded at once, about."""


def is_parquet(file: Path) -> bool:
    """Whether `file` begins like a Parquet file."""
    with reading(file), open(file, "rb") as handle:
        return handle.read(len(MAGIC)) == MAGIC


def most_tokens(file: Path) -> int:
    """How many tokens `file` may hold."""
    return _FREE + _PER_BYTE * file.stat().st_size


def check_groups(file: Path, parquet: Any) -> None:
    """Refuse row groups of absurd size, and more rows than tokens are allowed."""
    groups = [parquet.metadata.row_group(group) for group in range(parquet.metadata.num_row_groups)]
    for size in (group.total_byte_size for group in groups):
        if not 0 <= size <= LARGEST_GROUP:
            raise ShardError(file, f"a row group declares {size:,} bytes; at most {LARGEST_GROUP:,} are read")
    # A row takes time even where it holds no token.
    check_tokens(file, parquet.metadata.num_rows, "rows")


def check_tokens(file: Path, tokens: int, what: str = "tokens") -> None:
    """Refuse more tokens than `file` may hold."""
    # 15 kB of one repeated value kept a reader busy for minutes.
    if tokens > most_tokens(file):
        raise ShardError(
            file, f"it unfolds to {tokens:,} {what} from {file.stat().st_size:,} bytes, which no text does"
        )


@dataclass(frozen=True)
class Batches:
    """The rows of a Parquet file as Arrow batches, in the manner of an Arrow stream."""

    parquet: Any
    names: Sequence[str]
    rows: int
    """Rows of a batch."""

    @property
    def schema(self) -> Any:
        """The columns."""
        return self.parquet.schema_arrow

    def __iter__(self) -> Iterator[Any]:
        yield from self.parquet.iter_batches(self.rows, columns=list(self.names))


@contextmanager
def open_parquet_lists(file: Path, names: Sequence[str]) -> Iterator[Batches]:
    """The columns of these names, as many as there are; refused where their lists hold more than the file may."""
    with reading(file), package("pyarrow.parquet").ParquetFile(file, memory_map=True) as parquet:
        check_groups(file, parquet)
        present = [name for name in names if name in parquet.schema_arrow.names]
        totals = dict.fromkeys(present, 0)
        for group in range(parquet.metadata.num_row_groups):
            columns = parquet.metadata.row_group(group)
            for index in range(columns.num_columns):
                column = columns.column(index)
                name = column.path_in_schema.partition(".")[0]
                if name in totals:
                    # The metadata counts the values of all lists, so nothing is decoded for it.
                    totals[name] += column.num_values
        for name, values in totals.items():
            check_tokens(file, values, f"values of {name}")
        # By the mean length, not by a number of rows: a row may be a book.
        mean = max(totals.values(), default=0) // max(parquet.metadata.num_rows, 1)
        yield Batches(parquet, present, max(1, _AT_ONCE // max(mean, 1)))
