"""Shared code of the formats with text in a column (Parquet, Arrow); pyarrow is imported only where it is used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bertwright.core.errors import MissingExtraError
from bertwright.corpus.errors import MAX_DOCUMENT, SourceError, too_long
from bertwright.corpus.sources.file import ExtractJob, File, Piece
from bertwright.corpus.sources.format import Article
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


def wanted(job: ExtractJob, schema: Any) -> list[str]:
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


def rows(
    job: ExtractJob, tables: Iterable[Any], first: int, counts: Counter[str], state: dict[str, Any]
) -> Iterator[Article]:
    """Yield one document per row of the record batches; the first batch begins with row `first` of the file."""
    number = first
    for table in tables:
        columns = {name: _values(job, table, name, number) for name in wanted(job, table.schema)}
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


def damaged_table(path: Path, error: Exception) -> SourceError:
    """The error for a file that pyarrow rejects."""
    reason = " ".join(str(error).split())[:200]
    return SourceError(f"{path} is damaged or truncated ({reason}). Download it again, or write it again.")


def slice_pieces(file: File, number: int, first: int, sizes: Sequence[int], bounds: Sequence[int]) -> Iterator[Piece]:
    """Yield pieces of consecutive slices of a table, given the slices' `sizes` [N] in bytes and their `bounds` [N + 1].

    Small slices are combined: each piece but the last has at least `PIECE_BYTES`.
    """
    runs = list(_combine(sizes))
    total = sum(sizes) or 1
    for i, (start, stop, size) in enumerate(runs):
        progress, last = file.size * size // total, i == len(runs) - 1
        yield Piece(number, first + i, bounds[start], bounds[stop], progress, last=last)


def _combine(sizes: Iterable[int]) -> Iterator[tuple[int, int, int]]:
    """Yield (start, stop, bytes) of runs of consecutive slices."""
    start = stop = total = 0
    for size in sizes:
        stop, total = stop + 1, total + size
        # Row groups and batches may be small: a piece for each would cost more than processing its text.
        if total >= PIECE_BYTES:
            yield start, stop, total
            start, total = stop, 0
    if stop > start:
        yield start, stop, total
