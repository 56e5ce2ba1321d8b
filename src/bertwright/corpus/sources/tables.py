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
from typing import TYPE_CHECKING, Any, Protocol

from bertwright.core.errors import ArtifactError, MissingExtraError
from bertwright.core.files import read_json
from bertwright.core.work_split import WorkSplit
from bertwright.corpus.config import SourceConfig
from bertwright.corpus.errors import MAX_DOCUMENT, SourceError, too_long
from bertwright.corpus.sources.dump import Header
from bertwright.corpus.sources.file import ExtractJob, File, Piece
from bertwright.corpus.sources.format import Article, PassedOverError, SourceFormat
from bertwright.corpus.sources.records import count_article, count_passed, document, most_replaced

if TYPE_CHECKING:  # known data sets are loaded only where a table is read
    from bertwright.corpus.sources.schemas import Schema

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
    files = _Files(open_table)
    return SourceFormat(
        kind,
        lambda head: head.startswith(magic),
        files.splits,
        files.documents,
        is_text=False,
        keys=frozenset({"text"}),
        columns=files.columns,
        header=files.header,
        **fields,
    )


@dataclass(frozen=True)
class _Files:
    """How the files of a format of tables are split and read."""

    open_table: Callable[[Path], AbstractContextManager[Table]]

    @contextmanager
    def opened(self, path: Path) -> Iterator[Table]:
        """Open a file. Raises `SourceError` where it is damaged."""
        pyarrow = arrow(path)
        try:
            with self.open_table(path) as table:
                yield table
        except (pyarrow.ArrowException, OSError) as error:
            reason = " ".join(str(error).split())[:200]
            raise SourceError(
                f"{path} is damaged or truncated ({reason}). Download it again, or write it again."
            ) from error

    def splits(
        self, file: File, config: SourceConfig, number: int, first: int, folder: Path, share: WorkSplit
    ) -> Iterator[Piece]:
        """As `SourceFormat.splits`."""
        with self.opened(file.path) as table:
            sizes, bounds = table.slices()
        runs, total = list(_combine(sizes)), sum(sizes) or 1
        for i, (start, stop, size) in enumerate(runs):
            progress, last = file.size * size // total, i == len(runs) - 1
            yield Piece(number, first + i, bounds[start], bounds[stop], progress, last=last)

    def documents(self, job: ExtractJob, counts: Counter[str], state: dict[str, Any]) -> Iterator[Article]:
        """As `SourceFormat.documents`."""
        from bertwright.corpus.sources.schemas import schema_of

        with self.opened(job.file.path) as table:
            schema, wanted = schema_of(table.schema.names, job.source), _wanted(job, table.schema)
            first, batches = table.batches(job.piece.start, job.piece.stop, wanted)
            for row, number in _rows(job, batches, first, wanted, counts):
                size = _bytes_of_strings(row) if schema else len((row[job.source.text] or "").encode(errors="replace"))
                if size > MAX_DOCUMENT:
                    raise too_long(job.file.path, number)
                counts["source_bytes"] += size
                try:
                    article = _article(job, schema, row, number)
                    count_article(job, article, counts)
                    yield article
                except PassedOverError as passed:
                    count_passed(passed, counts)
                state["last"] = f"the document in row {number:,}"
        state["ended"], state["lost_bytes"] = True, 0
        if counts["replaced_characters"] > most_replaced(counts["source_bytes"]):
            raise SourceError(
                f"{job.file.path} is not UTF-8 between row {job.piece.start:,} and {job.piece.stop:,}: "
                f"{counts['replaced_characters']:,} bytes are no characters. Write it again with valid UTF-8 text."
            )

    def header(self, file: File, config: SourceConfig) -> Header:
        """What the first row says of its wiki."""
        from bertwright.corpus.sources.schemas import header_of, schema_of

        with self.opened(file.path) as table:
            schema, (_, bounds) = schema_of(table.schema.names, config), table.slices()
            if schema is None or len(bounds) < 2:
                return Header()
            wanted = [name for name in schema.columns if name in table.schema.names]
        # Opened again: a stream of batches has been read to its end.
        with self.opened(file.path) as table:
            for batch in table.batches(bounds[0], bounds[1], wanted)[1]:
                for row in batch.slice(0, 1).select(wanted).to_pylist():
                    # Recognised by all columns, of which not all were read.
                    return header_of(dict.fromkeys(table.schema.names) | row, config)
        return Header()

    def columns(self, file: Path) -> list[str]:
        """The names of the columns of a file."""
        with self.opened(file) as table:
            return list(table.schema.names)


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
    from bertwright.corpus.sources.schemas import schema_of

    types, name = arrow(job.file.path).types, job.source.text
    if known := schema_of(schema.names, job.source):
        return [column for column in known.columns if column in schema.names]
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
    job: ExtractJob, batches: Iterable[Any], first: int, wanted: list[str], counts: Counter[str]
) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield the wanted columns of each row with its number; the first batch begins with row `first` of the file."""
    number = first
    for batch in batches:
        columns = [_values(job, batch, name, counts) for name in wanted]
        for values in zip(*columns, strict=True):
            yield dict(zip(wanted, values, strict=True)), number
            number += 1


def _article(job: ExtractJob, schema: Schema | None, row: dict[str, Any], number: int) -> Article:
    """The document of a row."""
    if schema is None:
        return document(job, row[job.source.text] or "", row, number)
    try:
        return schema.read(job, row, number)
    except ValueError as error:
        raise SourceError(
            f"{job.file.path}: row {number:,} is no record of {schema.name} ({error}). Name the column that holds the "
            "text in corpus.source.text."
        ) from error


def _bytes_of_strings(row: dict[str, Any]) -> int:
    """The bytes of all strings in a row, at any depth."""
    size, waiting = 0, list(row.values())
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            size += len(value.encode(errors="replace"))
        elif isinstance(value, dict | list):
            waiting += value.values() if isinstance(value, dict) else value
    return size


def _values(job: ExtractJob, batch: Any, name: str, counts: Counter[str]) -> list[Any]:
    """A column of a record batch; U+FFFD, which is counted, replaces what is not UTF-8 in a text."""
    # Without validation pyarrow follows the offsets of a damaged file wherever they lead.
    column = batch.column(name)
    try:
        column.validate(full=True)
    except arrow(job.file.path).ArrowInvalid as error:
        if "UTF" not in str(error):  # invalid UTF-8 is replaced below
            raise
    try:
        values: list[Any] = column.to_pylist()
        return values
    except UnicodeDecodeError:
        return [_text_of(value, counts) for value in column]


def _text_of(scalar: Any, counts: Counter[str]) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        text = getattr(scalar, "value", scalar)  # of a dictionary
        if not hasattr(text, "as_buffer"):
            raise
        data = text.as_buffer().to_pybytes()
        decoded: str = data.decode(errors="replace")
        counts["replaced_characters"] += decoded.count("\ufffd") - data.count("\ufffd".encode())
        return decoded


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
