"""Formats of tables with text in a column (Parquet, Arrow); pyarrow is imported only where it is used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

from bertwright.core.errors import MissingExtraError
from bertwright.core.work_split import WorkSplit
from bertwright.corpus.config import SourceConfig
from bertwright.corpus.errors import MAX_DOCUMENT, SourceError, too_long
from bertwright.corpus.sources.file import ExtractJob, File, Piece
from bertwright.corpus.sources.format import Article, SourceFormat
from bertwright.corpus.sources.records import document

FACTS = ("id", "title", "url", "revision", "revid")
PIECE_BYTES = 8 * 2**20


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
