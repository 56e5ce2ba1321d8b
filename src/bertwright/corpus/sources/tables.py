"""The formats of tables with text in a column: Parquet, and Arrow files of a folder saved by Hugging Face `datasets`
(`Dataset.save_to_disk`). Both are read only with pyarrow, which is imported only where it is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import Any, Protocol

from bertwright.core.errors import ArtifactError, MissingExtraError
from bertwright.core.files import read_json
from bertwright.core.work_split import WorkSplit
from bertwright.corpus.config import SourceConfig
from bertwright.corpus.errors import MAX_DOCUMENT, SourceError, too_long
from bertwright.corpus.sources.file import ExtractJob, File, Piece
from bertwright.corpus.sources.format import Article, SourceFormat
from bertwright.corpus.sources.records import document

FACTS = ("id", "title", "url", "revision", "revid")
PIECE_BYTES = 8 * 2**20
# Rows in memory at a time.
_ROWS = 256
# Most pieces of a row group. Skipping a row means decoding it, so each row is decoded 32 times on average.
_MOST_CUTS = 64
_STATE, _SPLITS = "state.json", "dataset_dict.json"


def arrow(path: Path) -> Any:
    """The pyarrow module. Raises `MissingExtraError`, which says how to install it, if it is missing."""
    try:
        # Imported here because it is an optional extra: text and dumps must be readable without it.
        import pyarrow
    except ImportError as error:
        raise MissingExtraError(
            f"{path} cannot be read without pyarrow, which is not installed: pip install 'bertwright[formats]'."
        ) from error
    return pyarrow


class Table(Protocol):
    """An open file of rows."""

    @property
    def schema(self) -> Any:
        """Its Arrow schema."""

    def slices(self) -> tuple[Sequence[int], Sequence[int]]:
        """The bytes of each slice of which pieces consist [N], and the bounds of the slices [N + 1]."""

    def batches(self, start: int, stop: int, columns: list[str]) -> tuple[int, Iterable[Any]]:
        """The number of the first row between two bounds, and the record batches, with at least these columns."""


def table_format(
    kind: str, magic: bytes, open_table: Callable[[Path], AbstractContextManager[Table]], **fields: Any
) -> SourceFormat:
    """A format of tables that begin with `magic`; `fields` are those of `SourceFormat`."""

    @contextmanager
    def opened(path: Path) -> Iterator[Table]:
        pyarrow = arrow(path)
        try:
            with open_table(path) as table:
                yield table
        except (pyarrow.ArrowException, OSError) as error:
            reason = " ".join(str(error).split())[:200]
            raise SourceError(
                f"{path} is damaged or truncated ({reason}). Download it again, or write it again."
            ) from error

    def matches(head: bytes) -> bool:
        return head.startswith(magic)

    def splits(
        file: File, config: SourceConfig, number: int, first: int, folder: Path, share: WorkSplit
    ) -> Iterator[Piece]:
        with opened(file.path) as table:
            sizes, bounds = table.slices()
        runs, total = list(_combine(sizes)), sum(sizes) or 1
        for i, (start, stop, size) in enumerate(runs):
            progress, last = file.size * size // total, i == len(runs) - 1
            yield Piece(number, first + i, bounds[start], bounds[stop], progress, last=last)

    def documents(job: ExtractJob, counts: Counter[str], state: dict[str, Any]) -> Iterator[Article]:
        with opened(job.file.path) as table:
            first, batches = table.batches(job.piece.start, job.piece.stop, _wanted(job, table.schema))
            yield from _rows(job, batches, first, counts, state)

    def columns(file: Path) -> list[str]:
        with opened(file) as table:
            return list(table.schema.names)

    return SourceFormat(
        kind, matches, splits, documents, is_text=False, keys=frozenset({"text"}), columns=columns, **fields
    )


def _combine(sizes: Iterable[int]) -> Iterator[tuple[int, int, int]]:
    """Yield (start, stop, bytes) of runs of slices with at least `PIECE_BYTES` each, except the last."""
    start = stop = total = 0
    for size in sizes:
        stop, total = stop + 1, total + size
        # Row groups and batches may be small: a piece for each would cost more than processing its text.
        if total >= PIECE_BYTES:
            yield start, stop, total
            start, total = stop, 0
    if stop > start:
        yield start, stop, total


def _wanted(job: ExtractJob, schema: Any) -> list[str]:
    """The columns to read. Raises `SourceError` where the text column is missing or does not hold strings."""
    types, name = arrow(job.file.path).types, job.source.text
    if name not in schema.names:
        raise SourceError(
            f"{job.file.path} has no column {name!r}; its columns are {', '.join(map(repr, schema.names))}. "
            "Name the one that holds the text in corpus.source.text."
        )
    kind = schema.field(name).type
    value = kind.value_type if types.is_dictionary(kind) else kind
    if not (types.is_string(value) or types.is_large_string(value) or types.is_string_view(value)):
        raise SourceError(
            f"{job.file.path}: the column {name!r} holds {kind}, not text. Name a column of strings in "
            "corpus.source.text."
        )
    return [name, *(fact for fact in FACTS if fact in schema.names and fact != name)]


def _rows(
    job: ExtractJob, tables: Iterable[Any], first: int, counts: Counter[str], state: dict[str, Any]
) -> Iterator[Article]:
    """Yield one document per row of the record batches; the first batch begins with row `first` of the file."""
    number = first
    for table in tables:
        columns = {name: _values(job, table, name, number) for name in _wanted(job, table.schema)}
        for i, text in enumerate(columns[job.source.text]):
            size = len((text or "").encode(errors="replace"))
            if size > MAX_DOCUMENT:
                raise too_long(job.file.path, number)
            counts["source_bytes"] += size
            yield document(job, text or "", {name: column[i] for name, column in columns.items()}, number)
            state["last"] = f"the document in row {number:,}"
            number += 1
    state["ended"], state["lost_bytes"] = True, 0


def _values(job: ExtractJob, table: Any, name: str, first: int) -> list[Any]:
    """A column of a record batch that begins with row `first`. Raises `SourceError` where a text is not UTF-8."""
    # Without validation pyarrow follows the offsets of a damaged file wherever they lead.
    column = table.column(name)
    try:
        column.validate(full=True)
    except arrow(job.file.path).ArrowInvalid as error:
        if "UTF" not in str(error):  # invalid UTF-8 is found below, with its position
            raise
    try:
        values: list[Any] = column.to_pylist()
        return values
    except UnicodeDecodeError:
        for row, value in enumerate(column, first):
            try:
                value.as_py()
            except UnicodeDecodeError as error:
                raise SourceError(
                    f"{job.file.path}: row {row:,} of the column {name!r} is not UTF-8 at its byte {error.start:,}. "
                    "Write the file again with valid UTF-8 text."
                ) from error
        raise


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


PARQUET = table_format("parquet", b"PAR1", open_parquet, bytes_per_text=0.5)


def data_files(folder: Path) -> list[Path] | None:
    """The files of the dataset saved in the folder; None if there is none."""
    return _data_files(folder) if any((folder / name).is_file() for name in (_STATE, _SPLITS)) else None


def _data_files(folder: Path) -> list[Path]:
    """The files of the dataset in order. Raises `SourceError` if there are several splits: one has to be named."""
    try:
        if (folder / _SPLITS).is_file():
            splits = list(read_json(folder / _SPLITS)["splits"])
            if len(splits) != 1:
                raise SourceError(
                    f"{folder} holds the splits {', '.join(splits)}. Give one of them, e.g. {folder / splits[0]}."
                )
            return _data_files(folder / splits[0])
        # Only the file name: an untrusted state.json must not lead out of the folder.
        return [folder / Path(entry["filename"]).name for entry in read_json(folder / _STATE)["_data_files"]]
    except (ArtifactError, KeyError, TypeError, IndexError) as error:
        raise SourceError(
            f"{folder} is not a data set written by save_to_disk: {error!r}. Save it again, or give its files."
        ) from error


@dataclass(frozen=True)
class ArrowTable:
    """An open Arrow stream; its slices are record batches, as views of the memory-mapped file."""

    schema: Any
    stream: Iterator[Any]

    def slices(self) -> tuple[list[int], range]:
        """As `Table.slices`."""
        sizes = [batch.nbytes for batch in self.stream]
        return sizes, range(len(sizes) + 1)

    def batches(self, start: int, stop: int, columns: list[str]) -> tuple[int, Iterator[Any]]:
        """As `Table.batches`; earlier batches are skipped without being read."""
        before = sum(batch.num_rows for batch in islice(self.stream, start))
        return before, islice(self.stream, stop - start)


@contextmanager
def open_stream(path: Path) -> Iterator[ArrowTable]:
    """Open an Arrow stream with pyarrow."""
    pyarrow = arrow(path)
    # Memory-mapped, so that batches before a piece are skipped without being read.
    with pyarrow.memory_map(str(path)) as memory, pyarrow.ipc.open_stream(memory) as stream:
        yield ArrowTable(stream.schema, iter(stream))


# The marker with which a message of an Arrow stream begins.
DATASETS = table_format("datasets", b"\xff\xff\xff\xff", open_stream, data_files=data_files)
