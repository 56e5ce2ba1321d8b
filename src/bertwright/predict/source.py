"""What a model is to answer, read in chunks from a file, and the file written again with the answers."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple, TypeVar

from bertwright.core.errors import DataError
from bertwright.core.json_values import parse_json
from bertwright.examples.problems import Problems

AT_ONCE = 1024
"""Questions that are read, sorted by length and answered together."""
LINES = ".txt"
_SPACES = str.maketrans("\t\r\n", "   ")
"""What would end a cell or a row."""
_Of = TypeVar("_Of")


class Answer(NamedTuple):
    """A model's answer to one question."""

    added: Mapping[str, Any]
    """What is added to a record, by column."""
    rows: Sequence[Sequence[str]]
    """The cells of its rows where lines of text are answered."""
    details: Mapping[str, Any]
    """All of it, as an object of JSON."""


class Answerer(ABC):
    """A model that answers questions of one kind, such as texts."""

    lacking: ClassVar[str]
    """What is wrong with a record that it cannot answer, a plural."""

    @property
    @abstractmethod
    def added(self) -> Mapping[str, type[str] | type[float] | type[list[str]] | type[list[float]]]:
        """The columns that are added to records, with the types of their values."""

    @abstractmethod
    def of_line(self, line: str) -> Any:
        """The question in a line of text; None if there is none."""

    @abstractmethod
    def find(self, file: Path, some: Sequence[Mapping[str, Any]]) -> None:
        """Find the columns of the questions in some records of a file; raises `DataError` naming it if there are
        none."""

    def by_number(self, header: Sequence[str]) -> bool:
        """Whether its columns are numbers from 1 instead of names in the first row of a table, which then is data."""
        return False

    @abstractmethod
    def of_record(self, record: Mapping[str, Any]) -> Any:
        """The question in a record; None if there is none."""

    @abstractmethod
    def answer(self, some: Sequence[Any]) -> list[Answer]:
        """The answers to questions."""


@dataclass
class Chunk:
    """A part of a file."""

    questions: list[Any]
    """None where there is none, or it cannot be read."""
    content: Any
    """The same part as its format has it."""


Answered = Iterable[tuple[Chunk, list[Answer | None]]]


class Source(ABC):
    """A file of questions in one format."""

    @abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """Yield the parts of the file in order. Raises `DataError`, naming the file, if it cannot be read at all."""

    @abstractmethod
    def write(self, answered: Answered, out: BinaryIO) -> None:
        """Write the file again with the answers; what has no answer stays as it is."""


@dataclass
class Lines(Source):
    """Lines of text, each with a question; answered by rows of cells with tabs between them."""

    lines: Iterable[str]
    answerer: Answerer
    problems: Problems
    number: int = field(default=0, init=False)

    def chunks(self) -> Iterator[Chunk]:
        """As `Source.chunks`."""
        for some in in_chunks(self.lines):
            yield Chunk([self._question(line.rstrip("\r\n")) for line in some], some)

    def _question(self, line: str) -> Any:
        self.number += 1
        place = f"line {self.number:,}"
        if not is_text(line):
            self.problems.add("lines that are not UTF-8", place)
            return None
        question = self.answerer.of_line(line) if line.strip() else None
        # An empty line separates texts; it has an empty row.
        if question is None and line.strip():
            self.problems.add(self.answerer.lacking, place)
        return question

    def write(self, answered: Answered, out: BinaryIO) -> None:
        """As `Source.write`."""
        for _, answers in answered:
            for answer in answers:
                rows = answer.rows if answer else [[]]
                text = "".join("\t".join(cell.translate(_SPACES) for cell in row) + "\n" for row in rows)
                out.write(text.encode("utf-8", "surrogateescape"))


@dataclass
class Squad(Source):
    """Questions in SQuAD's JSON; answered as the official script reads them, {id: answer}."""

    file: Path
    problems: Problems

    def chunks(self) -> Iterator[Chunk]:
        """As `Source.chunks`."""
        from bertwright.tasks.span.files import read_questions

        for some in in_chunks(read_questions(self.file, self.problems, answers=False)):
            yield Chunk([(each.question, each.context) for each in some], [each.id for each in some])

    def write(self, answered: Answered, out: BinaryIO) -> None:
        """As `Source.write`."""
        found = {
            name: answer.added["prediction"]
            for chunk, answers in answered
            for name, answer in zip(chunk.content, answers, strict=True)
            if answer
        }
        rows = ",\n".join(f"  {to_json(name)}: {to_json(text)}" for name, text in found.items())
        out.write(f"{{\n{rows}\n}}\n".encode())


def in_chunks(some: Iterable[_Of]) -> Iterator[list[_Of]]:
    """Yield lists of at most `AT_ONCE`."""
    rest = iter(some)
    while chunk := list(islice(rest, AT_ONCE)):
        yield chunk


def to_json(value: Any) -> str:
    """A value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def is_text(value: Any) -> bool:
    """Whether a value is text, all of which was UTF-8 in its file."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_squad(file: Path) -> bool:
    """Whether a .json has articles as SQuAD's, not a list of records; raises `DataError` if it is no JSON."""
    try:
        content = parse_json(file.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise DataError(f"{file} is not valid JSON ({error}). Correct it.") from error
    return isinstance(content, dict)
