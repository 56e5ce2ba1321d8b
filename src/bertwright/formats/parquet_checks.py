"""Opens Parquet files that may be hostile: bounds their decoded size before anything is read.

A column that repeats one value takes almost no space in the file. So the file size limits the number of tokens, far
above what real text needs. For lists the metadata states this number; for texts the tokens are counted.
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
"""Maximum number of uncompressed bytes that a row group may declare."""
_FREE, _PER_BYTE = 2**23, 16
"""Tokens that any file may hold, and additional tokens per byte of the file; compressed text has less than one."""
_AT_ONCE = 2**20
"""Approximate number of values of a column that are decoded at once."""


def is_parquet(file: Path) -> bool:
    """Whether `file` starts with Parquet's magic bytes."""
    with reading(file), open(file, "rb") as handle:
        return handle.read(len(MAGIC)) == MAGIC


def most_tokens(file: Path) -> int:
    """Return the maximum number of tokens that `file` may hold."""
    return _FREE + _PER_BYTE * file.stat().st_size


def check_groups(file: Path, parquet: Any) -> None:
    """Raise `ShardError` for row groups that declare too many bytes, and for more rows than allowed tokens."""
    groups = [parquet.metadata.row_group(group) for group in range(parquet.metadata.num_row_groups)]
    for size in (group.total_byte_size for group in groups):
        if not 0 <= size <= LARGEST_GROUP:
            raise ShardError(file, f"a row group declares {size:,} bytes; at most {LARGEST_GROUP:,} are supported")
    # A row takes time even if it holds no token.
    check_tokens(file, parquet.metadata.num_rows, "rows")


def check_tokens(file: Path, tokens: int, what: str = "tokens") -> None:
    """Raise `ShardError` if `tokens` is more than `file` may hold."""
    # 15 kB of one repeated value kept a reader busy for minutes.
    if tokens > most_tokens(file):
        raise ShardError(
            file, f"it decompresses to {tokens:,} {what} from {file.stat().st_size:,} bytes, more than any text"
        )


@dataclass(frozen=True)
class Batches:
    """The rows of a Parquet file as Arrow batches, with the interface of an Arrow stream."""

    parquet: Any
    names: Sequence[str]
    rows: int
    """Number of rows in a batch."""

    @property
    def schema(self) -> Any:
        """The Arrow schema of the file."""
        return self.parquet.schema_arrow

    def __iter__(self) -> Iterator[Any]:
        yield from self.parquet.iter_batches(self.rows, columns=list(self.names))

    def from_row(self, first: int) -> tuple[int, Iterator[Any]]:
        """Return the batches from the row group with the row `first` on, and the number of its first row."""
        metadata, at, group = self.parquet.metadata, 0, 0
        while group < metadata.num_row_groups and at + metadata.row_group(group).num_rows <= first:
            at, group = at + metadata.row_group(group).num_rows, group + 1
        groups = list(range(group, metadata.num_row_groups))
        return at, self.parquet.iter_batches(self.rows, row_groups=groups, columns=list(self.names))


@contextmanager
def open_parquet_lists(file: Path, names: Sequence[str]) -> Iterator[Batches]:
    """Open the columns among `names` that exist. Raises `ShardError` if their lists hold more values than allowed."""
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
                    # The metadata has the number of values of all lists, so nothing needs to be decoded.
                    totals[name] += column.num_values
        for name, values in totals.items():
            check_tokens(file, values, f"values of {name}")
        # Derive the rows per batch from the mean length, because a row may be an entire book.
        mean = max(totals.values(), default=0) // max(parquet.metadata.num_rows, 1)
        yield Batches(parquet, present, max(1, _AT_ONCE // max(mean, 1)))
