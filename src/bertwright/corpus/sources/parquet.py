"""Parquet files with a column of texts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from bertwright.corpus.sources.columns import PIECE_BYTES, table_format

# Rows in memory at a time.
_ROWS = 256
# Most pieces of a row group. Skipping a row means decoding it, so each row is decoded 32 times on average.
_MOST_CUTS = 64


@dataclass(frozen=True)
class ParquetTable:
    """An open Parquet file; its slices are runs of rows: row groups, or equal parts of a large one."""

    file: Any

    @property
    def schema(self) -> Any:
        """As `Table.schema`."""
        return self.file.schema_arrow

    def slices(self) -> tuple[list[int], list[int]]:
        """As `Table.slices`."""
        sizes, bounds = list[int](), [0]
        for group in map(self.file.metadata.row_group, range(self.file.metadata.num_row_groups)):
            rows, size, begin = group.num_rows, group.total_byte_size, bounds[-1]
            cuts = min(max(1, size // PIECE_BYTES), _MOST_CUTS, max(1, rows))
            sizes += [size // cuts] * cuts
            bounds += [begin + rows * (i + 1) // cuts for i in range(cuts)]
        return sizes, bounds

    def batches(self, start: int, stop: int, columns: list[str]) -> tuple[int, Iterator[Any]]:
        """As `Table.batches`."""
        return start, self._between(start, stop, columns)

    def _between(self, start: int, stop: int, columns: list[str]) -> Iterator[Any]:
        about = self.file.metadata
        begins = [0, *accumulate(about.row_group(i).num_rows for i in range(about.num_row_groups))]
        groups = [i for i, (first, end) in enumerate(pairwise(begins)) if first < stop and end > start]
        at = begins[groups[0]] if groups else stop
        # Without pyarrow's threads: each processor already has a worker.
        for batch in self.file.iter_batches(_ROWS, row_groups=groups, columns=columns, use_threads=False):
            if at >= stop:
                return
            low, high = max(start - at, 0), min(stop - at, len(batch))
            if low < high:
                yield batch.slice(low, high - low)
            at += len(batch)


@contextmanager
def open_parquet(path: Path) -> Iterator[ParquetTable]:
    """Open a Parquet file with pyarrow."""
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path, memory_map=True) as file:
        yield ParquetTable(file)


FORMAT = table_format("parquet", b"PAR1", open_parquet, bytes_per_text=0.5)
