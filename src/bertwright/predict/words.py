"""Column files, a word a line, written again with the column of tags filled and everything else as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from bertwright.core.errors import DataError
from bertwright.examples.labelled.records import reading
from bertwright.examples.problems import Problems
from bertwright.predict.source import Answered, Chunk, Source, in_chunks
from bertwright.tasks.tagging.files import CONLLU, NO_TAG, ColumnFile, Row, read_columns

_CELL = re.compile(r"\S+")
_SAMPLE = 2_000
"""Lines of a .txt by which it is found to have tags."""


def has_tags(file: Path, labels: Sequence[str]) -> bool:
    """Whether a .txt has a word on each line and its tag, one of `labels`, at the end, as CoNLL-2003's, not a text."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        rows = [cells for line in islice(lines, _SAMPLE) if (cells := line.split())]
    known = {*labels, *NO_TAG}
    is_table = len({len(cells) for cells in rows}) == 1 and len(rows[0]) > 1
    return is_table and sum(cells[-1] in known for cells in rows) * 2 >= len(rows)


class _Content(NamedTuple):
    """The lines of a chunk."""

    sentences: list[list[Row]]
    last: int
    """The number of its last line."""


class WordColumns(Source):
    """A column file; the words of each sentence are a question.

    Tags stand in the column that has tags of the model, or none: of CoNLL-U `upos`, unless they are of entities, which
    stand in `misc` as `NER=`. A file without such a column gets one more. `tag` names another column.
    """

    def __init__(self, file: Path, labels: Sequence[str], names: tuple[str, str], problems: Problems) -> None:
        self.file, self.problems = file, problems
        word, tag = names
        with reading(file):
            self.columns = read_columns(file)
        self.word = self.columns.word(file, word)
        self.fill = _Filler.of(file, self.columns, self.word, labels, tag)

    def chunks(self) -> Iterator[Chunk]:
        """As `Source.chunks`."""
        for some in in_chunks(self.columns.blocks(self.file, self.problems)):
            words = [[row.cells[self.word] for row in rows] for rows in some]
            yield Chunk(words, _Content(some, some[-1][-1].line))

    def write(self, answered: Answered, out: BinaryIO) -> None:
        """As `Source.write`."""
        number = 0
        with self.file.open(encoding="utf-8", newline="\n") as lines:
            for chunk, answers in answered:
                content: _Content = chunk.content
                tags = {
                    row.line: tag
                    for rows, answer in zip(content.sentences, answers, strict=True)
                    if answer
                    for row, tag in zip(rows, answer.added["prediction"], strict=True)
                }
                while number < content.last:
                    line, number = next(lines), number + 1
                    out.write((self.fill(line, tags[number]) if number in tags else line).encode())
            out.writelines(line.encode() for line in lines)


class _Filler(NamedTuple):
    """Where a tag stands in a line."""

    column: int
    """The number of columns: after the last one."""
    separator: str | None
    edit: Callable[[str, str], str]
    """What becomes of a cell, for its tag."""

    @staticmethod
    def of(file: Path, columns: ColumnFile, word: int, labels: Sequence[str], tag: str) -> _Filler:
        """Find the column of the tags; raises `DataError` if there is no column `tag`."""
        names, separator = columns.names, columns.separator
        if len(names) == 1 and separator is None:
            separator = "\t"
        if tag:
            if tag not in names and not (tag.isdecimal() and 0 < int(tag) <= len(names)):
                raise DataError(f"{file} has the columns {', '.join(names)}, not {tag!r} (--tag). Give one of them.")
            return _Filler(names.index(tag) if tag in names else int(tag) - 1, separator, _replaced)
        entities = any(label.partition("-")[0] in ("B", "I") and "-" in label for label in labels)
        if tuple(names) == CONLLU and entities:
            return _Filler(CONLLU.index("misc"), separator, _in_misc)
        if tuple(names) == CONLLU:
            return _Filler(CONLLU.index("upos"), separator, _replaced)
        known = {*labels, *NO_TAG}
        fitting = [
            column
            for column in range(word + 1, len(names))
            if sum(row[column] in known for row in columns.sample) * 2 >= len(columns.sample)
        ]
        return _Filler(fitting[-1] if fitting else len(names), separator, _replaced)

    def __call__(self, line: str, tag: str) -> str:
        """The line with the tag."""
        body = line.rstrip("\r\n")
        end = line[len(body) :]
        if self.separator is not None:
            cells = body.split(self.separator)
            before = cells[self.column] if self.column < len(cells) else ""
            cells[self.column : self.column + 1] = [self.edit(before, tag)]
            return self.separator.join(cells) + end
        found = list(_CELL.finditer(body))
        if self.column == len(found):
            return f"{body} {tag}{end}"
        cell = found[self.column]
        return body[: cell.start()] + self.edit(cell[0], tag) + body[cell.end() :] + end


def _replaced(cell: str, tag: str) -> str:
    return tag


def _in_misc(cell: str, tag: str) -> str:
    """The attributes of a word, with its entity."""
    others = [each for each in cell.split("|") if each != "_" and not each.startswith("NER=")]
    return "|".join([*others, *([f"NER={tag}"] if tag != "O" else [])]) or "_"
