"""Reads files of labelled texts as records: GLUE's .tsv layout, .csv, .jsonl, .json (a list of objects),
.parquet, .arrow."""

from __future__ import annotations

import csv
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bertwright.core.errors import DataError, MissingExtraError
from bertwright.core.files import naming
from bertwright.core.json_values import parse_json, without_surrogates
from bertwright.corpus.characters import composed


class Place(NamedTuple):
    """The location of a record in its file, shown as "line 7"."""

    unit: str
    number: int
    """Counted from 1; of a record of several lines, the last one."""

    def __str__(self) -> str:
        return f"{self.unit} {self.number:,}"


Record = tuple[Place, Mapping[str, Any]]
"""The location of a record, and its values by column name."""
_WHOLE = 2**28
"""Maximum size of a .json, which is read into memory at once (bytes)."""
_MAX_CELL = 2**25
"""Maximum size of a cell of a .csv (characters); without a limit, a missing quotation mark fills memory."""
TABLES = (".tsv", ".csv")
"""The suffixes of files whose first row may be a header or data."""


def records(
    file: Path, without_header: Sequence[str] = (), numbered: bool = False, normal: bool = True
) -> Iterator[Record]:
    """Yield the records of a file, whose format is determined by its suffix (`config.SUFFIXES`).

    Their texts are in the normal form of the corpus (NFC), so that two spellings are not two classes; unless not
    `normal`, for files that refer to their texts by places of characters.

    `without_header` names the columns of a .tsv that has no header; if `numbered`, the first row of a table is data,
    and the names of the columns are their numbers from 1. Raises `DataError` naming the file, and where
    possible the line, that cannot be read, and `MissingExtraError` for a .parquet without pyarrow.
    """
    with reading(file):
        if file.suffix in TABLES:
            rows = _tsv(file) if file.suffix == ".tsv" else _csv(file)
            found = _named(rows, without_header if file.suffix == ".tsv" else (), numbered)
        else:
            found = _READERS[file.suffix](file)
        for place, record in found:
            yield place, composed(record) if normal else record


def named(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The record with the names of its columns in the normal form of the corpus, as `records` has them; its texts
    stay as they are written, for programs that cut answers out of them."""
    return {composed(name): value for name, value in record.items()}


def _named(rows: Iterator[tuple[int, list[str]]], without_header: Sequence[str], numbered: bool) -> Iterator[Record]:
    """Yield the rows of a table, given with the numbers of their lines, as records."""
    names: Sequence[str] | None = None
    for number, cells in rows:
        if names is None:
            if numbered:
                names = [str(column) for column in range(1, len(cells) + 1)]
            else:
                # The first row is data if it lacks a name that a header of this file would contain.
                names = without_header if without_header and without_header[-1] not in cells else cells
            if names is cells:
                continue
        # A row that is too short has nothing in its last columns.
        yield Place("line", number), dict(zip(names, [*cells, *[None] * (len(names) - len(cells))], strict=False))


def _tsv(file: Path) -> Iterator[tuple[int, list[str]]]:
    """GLUE's layout: cells are separated by tabs only, and quotation marks have no special meaning."""
    # Lines end only at line feeds: texts contain other characters that some readers treat as line ends.
    with file.open(encoding="utf-8-sig", newline="\n") as lines:
        for number, line in enumerate(lines, 1):
            yield number, line.rstrip("\r\n").split("\t")


def _csv(file: Path) -> Iterator[tuple[int, list[str]]]:
    """Cells are separated by commas or, as spreadsheets write where a comma is the decimal sign, by semicolons."""
    with large_cells(), file.open(encoding="utf-8-sig", newline="") as lines:
        header = lines.readline(_MAX_CELL)
        lines.seek(0)
        reader = csv.reader(lines, strict=True, delimiter=delimiter_of(header))
        try:
            for row in reader:
                if row:  # a blank line has no cells
                    yield reader.line_num, row
        except csv.Error as error:
            place = f"{file}, line {reader.line_num:,}"
            if "field limit" in str(error):
                raise DataError(
                    f"{place}: a cell has more than {_MAX_CELL:,} characters. Close its quotation mark if that is "
                    "missing; write longer texts as .jsonl."
                ) from error
            raise DataError(
                f"{place}: {error}. Correct the table of comma-separated values, or write a .tsv."
            ) from error


def delimiter_of(header: str) -> str:
    """What separates the cells of a .csv with this header."""
    return ";" if ";" in header and "," not in header else ","


@contextmanager
def large_cells() -> Iterator[None]:
    """Let the module csv, whose limit applies to the process, read cells of up to `_MAX_CELL` characters."""
    before = csv.field_size_limit(_MAX_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _jsonl(file: Path) -> Iterator[Record]:
    with file.open(encoding="utf-8-sig", newline="\n") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield Place("line", number), _object(file, f"line {number:,}", line)


def _json(file: Path) -> Iterator[Record]:
    if (size := file.stat().st_size) > _WHOLE:
        raise DataError(
            f"{file} has {size:,} bytes, but a .json file is read completely into memory. Write one object per line "
            "instead (.jsonl)."
        )
    values = _parsed(str(file), file.read_text(encoding="utf-8-sig"))
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise DataError(f"{file} does not contain a list of objects. Write a list, or one object per line (.jsonl).")
    for number, value in enumerate(values, 1):
        yield Place("object", number), _without_surrogates(value)


@contextmanager
def open_parquet(file: Path) -> Iterator[Any]:
    """Open a .parquet as a `ParquetFile`; raises `MissingExtraError` without pyarrow, and `DataError` if the file is
    found damaged inside the `with` block."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise MissingExtraError(
            f"{file} is read with pyarrow, which is not installed: pip install 'bertwright[formats]'."
        ) from error
    try:
        with ParquetFile(file) as table:
            yield table
    except (ArrowException, OSError) as error:
        # An error of the disk has a number; pyarrow raises one without it for a damaged page.
        if getattr(error, "errno", None) is not None:
            raise
        raise DataError(
            f"{file} is damaged or is not a Parquet file ({error}). Download it or write it again."
        ) from error


def _parquet(file: Path) -> Iterator[Record]:
    with open_parquet(file) as table:
        number = 0
        for batch in table.iter_batches(1024, use_threads=False):
            batch.validate(full=True)
            for row in batch.to_pylist():
                number += 1
                yield Place("row", number), row


@contextmanager
def open_arrow(file: Path) -> Iterator[Any]:
    """Open a table that `datasets` keeps in its cache, as a stream of batches; raises as `open_parquet`."""
    try:
        from pyarrow import ArrowException, ipc
    except ImportError as error:
        raise MissingExtraError(
            f"{file} is read with pyarrow, which is not installed: pip install 'bertwright[formats]'."
        ) from error
    try:
        with ipc.open_stream(str(file)) as table:
            yield table
    except ArrowException as error:
        raise DataError(f"{file} is damaged or is not an Arrow stream ({error}). Make it again.") from error


def _arrow(file: Path) -> Iterator[Record]:
    number = 0
    with open_arrow(file) as table:
        for batch in table:
            batch.validate(full=True)
            for row in batch.to_pylist():
                number += 1
                yield Place("row", number), row


def _object(file: Path, place: str, line: str) -> Mapping[str, Any]:
    value = _parsed(f"{file}: {place}", line)
    if not isinstance(value, dict):
        raise DataError(
            f"{file}: {place} is not an object but {str(value)[:40]!r}. Write an object with a key for each column."
        )
    return _without_surrogates(value)


def _parsed(place: str, text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise DataError(f"{place} is not valid JSON ({error}). Correct it.") from error


def _without_surrogates(record: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: without_surrogates(value) if isinstance(value, str) else value for key, value in record.items()}


_READERS: Mapping[str, Callable[[Path], Iterator[Record]]] = {
    ".jsonl": _jsonl,
    ".json": _json,
    ".parquet": _parquet,
    ".arrow": _arrow,
}


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Name the file in errors of reading it: of the disk, and, with its line, of text that is not UTF-8
    (`DataError`)."""
    try:
        with naming(file):
            yield
    except UnicodeDecodeError as error:
        # The error knows only the place in the part of the file that was read last.
        line, encoding = _line_of_other_encoding(file)
        raise DataError(
            f"{file} is not UTF-8: {error.reason} in line {line:,}. Write it again as UTF-8, if its encoding is "
            f"{encoding} by: iconv -f {encoding} -t UTF-8 {file} > NEW"
        ) from error


def _line_of_other_encoding(file: Path) -> tuple[int, str]:
    """The first line of a file that is not UTF-8, and the likeliest encoding of such a file."""
    with file.open("rb") as lines:
        number, line = next((each for each in enumerate(lines, 1) if not _is_utf8(each[1])), (1, b""))
    return number, "UTF-16" if line.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "WINDOWS-1252"


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
