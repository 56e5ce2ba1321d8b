"""Files of records, written again in their own format with columns of answers.

.tsv .csv .jsonl     each record is the bytes that it was, with the answers at its end
.json                a list of objects, with more keys
.parquet .arrow      the same columns, and more
"""

from __future__ import annotations

import csv
import io
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO

from bertwright.core.errors import DataError
from bertwright.core.json_values import parse_json, without_surrogates
from bertwright.examples.labelled.records import delimiter_of, large_cells, named, open_arrow, open_parquet, reading
from bertwright.examples.problems import Problems
from bertwright.predict.source import Answered, Answerer, Chunk, Source, in_chunks, to_json

_SAMPLE = 100
"""Records in which columns are looked for."""
_BOM = "\ufeff"


class Record(NamedTuple):
    """A record as its file has it."""

    text: str
    """All of it, the end of its line included."""
    place: str
    values: Mapping[str, Any] | None
    """By column; None: it cannot be read, or is an empty line."""


class TextRecords(Source):
    """Records that are lines of text."""

    def __init__(self, file: Path, answerer: Answerer, problems: Problems) -> None:
        self.file, self.answerer, self.problems = file, answerer, problems
        self.header = ""
        """The line with the names of the columns, if there is one."""

    @abstractmethod
    def read(self, lines: TextIO) -> Iterator[Record]:
        """Yield the records of a file."""

    def names(self, first: list[str]) -> tuple[list[str], bool]:
        """The names of the columns of a table with this first row, and whether that is a header."""
        if self.answerer.by_number(first):
            return [str(number) for number in range(1, len(first) + 1)], False
        return first, True

    @abstractmethod
    def joined(self, text: str, cells: Mapping[str, Any]) -> str:
        """A record, without the end of its line, with more cells."""

    def shell(self) -> AbstractContextManager[None]:
        """What reading needs around it."""
        return nullcontext()

    def chunks(self) -> Iterator[Chunk]:
        """As `Source.chunks`."""
        # Bytes that are not UTF-8 are kept as surrogates: only the record that has them cannot be answered.
        with (
            self.shell(),
            reading(self.file),
            self.file.open(encoding="utf-8", errors="surrogateescape", newline="\n") as lines,
        ):
            rows = self.read(lines)
            head = list(islice(rows, _SAMPLE))
            self._find([row.values for row in head if row.values is not None])
            for some in in_chunks(chain(head, rows)):
                yield Chunk([self._question(row) for row in some], some)

    def _find(self, some: Sequence[Mapping[str, Any]]) -> None:
        find_columns(self.file, some, self.answerer)

    def _question(self, row: Record) -> Any:
        if row.values is None:
            return None
        question = self.answerer.of_record(named(row.values))
        if question is None:
            self.problems.add(self.answerer.lacking, row.place)
        return question

    def write(self, answered: Answered, out: BinaryIO) -> None:
        """As `Source.write`."""
        begun = False
        for chunk, answers in answered:
            if not begun and self.header:
                self._write(out, self.header, {name: name for name in self.answerer.added})
            begun = True
            for row, answer in zip(chunk.content, answers, strict=True):
                self._write(out, row.text, answer.added if answer else None)

    def _write(self, out: BinaryIO, text: str, cells: Mapping[str, Any] | None) -> None:
        body = text.rstrip("\r\n")
        whole = text if cells is None else self.joined(body, cells) + text[len(body) :]
        out.write(whole.encode("utf-8", "surrogateescape"))


class Tsv(TextRecords):
    """GLUE's layout: cells are separated by tabs only, and quotation marks have no special meaning."""

    def read(self, lines: TextIO) -> Iterator[Record]:
        """As `TextRecords.read`."""
        first = next(lines, "")
        names, header = self.names(first.lstrip(_BOM).rstrip("\r\n").split("\t"))
        self.header = first if header else ""
        for number, line in enumerate(lines if header else chain([first], lines), 1 + header):
            cells, place = line.rstrip("\r\n").split("\t"), f"line {number:,}"
            fit = len(cells) == len(names)
            if not fit and line.strip():
                self.problems.add(f"lines without {len(names)} cells", place)
            yield Record(line, place, dict(zip(names, cells, strict=True)) if fit else None)

    def joined(self, text: str, cells: Mapping[str, Any]) -> str:
        """As `TextRecords.joined`."""
        return "\t".join([text, *(" ".join(_cell(value).split()) for value in cells.values())])


class Csv(TextRecords):
    """Comma-separated values, or semicolons as spreadsheets write them."""

    def shell(self) -> AbstractContextManager[None]:
        """As `TextRecords.shell`."""
        return large_cells()

    def read(self, lines: TextIO) -> Iterator[Record]:
        """As `TextRecords.read`."""
        taken: list[str] = []

        def noted() -> Iterator[str]:
            for line in lines:
                taken.append(line)
                yield line.lstrip(_BOM) if not self.header else line

        first = lines.readline()
        self.delimiter = delimiter_of(first)
        lines.seek(0)
        reader = csv.reader(noted(), strict=True, delimiter=self.delimiter)
        cells = next(reader, [])
        names, header = self.names(cells)
        if header:
            self.header = "".join(taken)
        else:
            yield Record("".join(taken), "line 1", dict(zip(names, cells, strict=True)))
        while True:
            taken.clear()
            try:
                cells = next(reader)
            except StopIteration:
                break
            except csv.Error as error:
                place = f"line {reader.line_num:,}"
                self.problems.add(f"records that are no comma-separated values ({error})", place)
                yield Record("".join(taken), place, None)
                continue
            place, fit = f"line {reader.line_num:,}", len(cells) == len(names)
            if cells and not fit:
                self.problems.add(f"records without {len(names)} cells", place)
            yield Record("".join(taken), place, dict(zip(names, cells, strict=True)) if fit else None)

    def joined(self, text: str, cells: Mapping[str, Any]) -> str:
        """As `TextRecords.joined`."""
        written = io.StringIO()
        csv.writer(written, delimiter=self.delimiter, lineterminator="").writerow(map(_cell, cells.values()))
        return f"{text}{self.delimiter}{written.getvalue()}"


class Jsonl(TextRecords):
    """An object a line."""

    def read(self, lines: TextIO) -> Iterator[Record]:
        """As `TextRecords.read`."""
        for number, line in enumerate(lines, 1):
            place, value = f"line {number:,}", None
            if line.strip():
                try:
                    value = parse_json(line.lstrip(_BOM))
                except ValueError:
                    value = None
                if not isinstance(value, dict):
                    self.problems.add("lines that are no objects of JSON", place)
            yield Record(line, place, value if isinstance(value, dict) else None)

    def joined(self, text: str, cells: Mapping[str, Any]) -> str:
        """As `TextRecords.joined`."""
        begin = text.rstrip()[:-1].rstrip()
        return f"{begin}{'' if begin.endswith('{') else ', '}{to_json(dict(cells))[1:]}"


class Json(Source):
    """A list of objects."""

    def __init__(self, file: Path, answerer: Answerer, problems: Problems) -> None:
        self.file, self.answerer, self.problems = file, answerer, problems

    def chunks(self) -> Iterator[Chunk]:
        """As `Source.chunks`."""
        with reading(self.file):
            text = self.file.read_text(encoding="utf-8-sig")
        try:
            values = parse_json(text)
        except ValueError as error:
            raise DataError(f"{self.file} is not valid JSON ({error}). Correct it.") from error
        if not isinstance(values, list):
            raise DataError(f"{self.file} is not a list of objects. Write a list, or one object a line (.jsonl).")
        find_columns(self.file, [each for each in values[:_SAMPLE] if isinstance(each, dict)], self.answerer)
        for some in in_chunks(enumerate(values, 1)):
            yield Chunk([self._question(number, each) for number, each in some], [each for _, each in some])

    def _question(self, number: int, value: Any) -> Any:
        question = self.answerer.of_record(named(value)) if isinstance(value, dict) else None
        if question is None:
            self.problems.add(self.answerer.lacking, f"object {number:,}")
        return question

    def write(self, answered: Answered, out: BinaryIO) -> None:
        """As `Source.write`."""
        before = "[\n"
        for chunk, answers in answered:
            for value, answer in zip(chunk.content, answers, strict=True):
                whole = {**value, **answer.added} if answer else value
                out.write(f"{before}  {to_json(whole)}".encode("utf-8", "replace"))
                before = ",\n"
        out.write(b"\n]\n")


class Table(Source):
    """A .parquet, or an .arrow as `datasets` writes it."""

    def __init__(self, file: Path, answerer: Answerer, problems: Problems) -> None:
        self.file, self.answerer, self.problems = file, answerer, problems

    @contextmanager
    def _batches(self) -> Iterator[Iterator[Any]]:
        if self.file.suffix == ".parquet":
            with open_parquet(self.file) as table:
                yield table.iter_batches(1024, use_threads=False)
        else:
            with open_arrow(self.file) as table:
                yield iter(table)

    def chunks(self) -> Iterator[Chunk]:
        """As `Source.chunks`."""
        number, found = 0, False
        with reading(self.file), self._batches() as batches:
            for batch in batches:
                batch.validate(full=True)
                rows = batch.to_pylist()
                if not found:
                    find_columns(self.file, rows[:_SAMPLE], self.answerer)
                    found = True
                questions = [self.answerer.of_record(named(row)) for row in rows]
                for at, question in enumerate(questions, number + 1):
                    if question is None:
                        self.problems.add(self.answerer.lacking, f"row {at:,}")
                number += len(rows)
                yield Chunk(questions, batch)
        if not found:
            find_columns(self.file, [], self.answerer)

    def write(self, answered: Answered, out: BinaryIO) -> None:
        """As `Source.write`."""
        import pyarrow
        from pyarrow import ipc, parquet

        writer = None
        for chunk, answers in answered:
            batch = chunk.content
            for name, kind in self.answerer.added.items():
                values = pyarrow.array([answer.added[name] if answer else None for answer in answers], _arrow(kind))
                batch = batch.append_column(name, values)
            if writer is None:
                open_writer = parquet.ParquetWriter if self.file.suffix == ".parquet" else ipc.new_stream
                writer = open_writer(out, batch.schema)
            writer.write_batch(batch)
        if writer is not None:
            writer.close()


RECORDS: Mapping[str, type[TextRecords | Json | Table]] = {
    ".tsv": Tsv,
    ".csv": Csv,
    ".jsonl": Jsonl,
    ".json": Json,
    ".parquet": Table,
    ".arrow": Table,
}
"""The formats of records by suffix."""


def find_columns(file: Path, some: Sequence[Mapping[str, Any]], answerer: Answerer) -> None:
    """Let `answerer` find its columns in some records of a file, and raise `DataError` if the file has none, or has
    columns where the answers would stand."""
    if not some:
        raise DataError(f"{file} has no records that can be read. Give a file with some.")
    some = [named(record) for record in some]
    answerer.find(file, some)
    if taken := [name for name in answerer.added if name in some[0]]:
        raise DataError(f"{file} has a column {taken[0]!r}, where the answers would stand. Rename it.")


def clean(value: Any) -> str | None:
    """A record's text; None if it is none, or if not all of it was UTF-8."""
    if not isinstance(value, str) or any("\udc80" <= character <= "\udcff" for character in value):
        return None
    return without_surrogates(value)


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return "|".join(map(_cell, value))
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _arrow(kind: Any) -> Any:
    import pyarrow

    named = {str: pyarrow.string(), float: pyarrow.float64()}
    return named[kind] if kind in named else pyarrow.list_(named[kind.__args__[0]])
