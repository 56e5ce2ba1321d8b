"""Reads sentences of tagged words from files: CoNLL-U, other column files, and records with lists of words and tags.

    column files    a word a line, columns separated by tabs or spaces, an empty line after each sentence
    .conllu         the same with ten columns; words of several tokens (3-4) and empty nodes (5.1) are skipped
    records         .jsonl, .json, .parquet, .arrow: a list of words and a list of tags, by name or by number

What cannot be read is skipped, counted, and named by file and line; it is an error only if nothing remains.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from bertwright.core.errors import DataError
from bertwright.corpus.characters import compose
from bertwright.examples.labelled.records import reading, records
from bertwright.examples.problems import Problems
from bertwright.tasks.tagging.schemes import OUTSIDE, split_tag

CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
"""The columns of CoNLL-U, in order (universaldependencies.org/format.html)."""
RECORDS = (".jsonl", ".json", ".parquet", ".arrow")
"""The suffixes of files of records; all others have columns."""
_WORDS = ("tokens", "words", "form", "token", "word", "text")
_TAGS = ("ner_tags", "tags", "ner", "labels", "pos_tags", "upos", "upos_tags", "label", "xpos")
"""Names of columns and keys, the most usual first."""
NO_TAG = ("_", "-", "")
_DOCUMENT = "-DOCSTART-"
"""Begins each document of CoNLL-2003."""
_SAMPLE = 2_000
"""Lines from which the columns of a file are guessed."""


class Sentence(NamedTuple):
    """A sentence of tagged words."""

    words: list[str]
    tags: list[str]
    """One for each word; "" if there is none."""
    place: str
    """Where its first word is, such as "line 7"."""


@dataclass(frozen=True)
class Layout:
    """Where the words and tags of a file are."""

    word: str
    tag: str
    """Names of columns or keys; of columns without names their numbers from 1."""


def read_sentences(file: Path, wanted: Layout, problems: Problems) -> tuple[Layout, Iterator[Sentence]]:
    """The layout of a file, and an iterator over its sentences in order.

    An empty name in `wanted` is guessed. Raises `DataError` naming the file if it has no such column, or if a list of
    tags is longer or shorter than that of the words in its first record.
    """
    if file.suffix not in RECORDS:
        return _columns(file, wanted, problems)
    return _records(file, wanted, problems)


def words_of(record: Mapping[str, Any], word: str = "") -> list[str] | None:
    """The list of words in a record, below the key `word` or a usual one; None if there is none."""
    name = word or next((each for each in _WORDS if isinstance(record.get(each), list)), "")
    words = record.get(name)
    return [str(each) for each in words] if isinstance(words, list) else None


class Row(NamedTuple):
    """A line of a column file."""

    line: int
    """Its number, from 1."""
    cells: list[str]


class ColumnFile(NamedTuple):
    """The columns of a file."""

    names: list[str]
    """Of columns without names, their numbers from 1."""
    separator: str | None
    """None: any number of spaces."""
    sample: list[list[str]]
    """The cells of its first lines."""

    def blocks(self, file: Path, problems: Problems) -> Iterator[list[Row]]:
        """Yield the words of each sentence; lines with too few columns are counted."""
        for block in _blocks(file, self.separator, len(self.names), problems):
            # Words of several tokens (3-4), whose tokens follow, and nodes that the text does not have (5.1).
            if rows := [row for row in block if self.names[0] != "id" or row.cells[0].isdigit()]:
                yield rows

    def word(self, file: Path, name: str = "") -> int:
        """The index of the column of words, which `name` may give."""
        return _index(file, "word", name, self.names) if name else int(self.names[0] == "id")


def read_columns(file: Path) -> ColumnFile:
    """The columns of a file, by its first lines. Raises `DataError` naming it if it has no words."""
    with reading(file), file.open(encoding="utf-8-sig", newline="\n") as lines:
        sample = list(islice(lines, _SAMPLE))
    filled = [line for line in sample if line.strip() and not line.startswith(("#", _DOCUMENT))]
    # Where tabs separate columns, words may contain spaces.
    separator = "\t" if sum("\t" in line for line in filled) * 2 > len(filled) else None
    rows = [_cells(line, separator) for line in filled]
    if not rows:
        raise DataError(f"{file} has no words. Give a file with a word and its tag on each line.")
    width = Counter(map(len, rows)).most_common(1)[0][0]
    rows = [row for row in rows if len(row) == width]
    return ColumnFile(_names(file, sample, rows), separator, rows)


def _columns(file: Path, wanted: Layout, problems: Problems) -> tuple[Layout, Iterator[Sentence]]:
    columns = read_columns(file)
    word, tag = _choose(file, wanted, columns.names, columns.sample)
    sentences = _sentences(columns.blocks(file, problems), word, tag)
    return Layout(columns.names[word], columns.names[tag]), sentences


def _sentences(blocks: Iterable[list[Row]], word: int, tag: int) -> Iterator[Sentence]:
    for rows in blocks:
        tags = [row.cells[tag] for row in rows]
        place = f"line {rows[0].line:,}"
        words = [compose(row.cells[word]) for row in rows]
        yield Sentence(words, ["" if each in NO_TAG else compose(each) for each in tags], place)


def _cells(line: str, separator: str | None) -> list[str]:
    return line.rstrip("\r\n").split(separator)


def _blocks(file: Path, separator: str | None, width: int, problems: Problems) -> Iterator[list[Row]]:
    """Yield the rows of each sentence; rows with too few columns are counted and skipped."""
    block: list[Row] = []
    with reading(file), file.open(encoding="utf-8-sig", newline="\n") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith(_DOCUMENT):
                yield block
                block = []
                continue
            cells = _cells(line, separator)
            # A token may begin with #, too; a comment is one cell between tabs, or has a space after it.
            if line.startswith("#") and (len(cells) < width or (separator is None and line.startswith("# "))):
                continue
            if len(cells) < width:
                problems.add(f"lines with fewer than {width} columns", f"line {number:,}")
                continue
            block.append(Row(number, cells))
    yield block


def _names(file: Path, sample: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The names of the columns: those that the file gives, of CoNLL-U, or their numbers from 1."""
    width = len(rows[0])
    for line in sample:
        if line.startswith("# global.columns ="):
            return [name.lower().rpartition(":")[2] for name in line.partition("=")[2].split()]
    if width == len(CONLLU) and all(re.fullmatch(r"[0-9]+([-.][0-9]+)?", row[0]) for row in rows):
        return list(CONLLU)
    names = [str(number) for number in range(1, width + 1)]
    if width > 2 and _counts_words(rows):
        names[0] = "id"
    return names


def _counts_words(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first column numbers the words of each sentence."""
    numbers = [int(row[0]) if row[0].isdecimal() else 0 for row in rows]
    steps = sum(b == a + 1 or b == 1 for a, b in pairwise(numbers))
    return numbers[0] == 1 and steps > 0.9 * (len(numbers) - 1)


def _choose(file: Path, wanted: Layout, names: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[int, int]:
    """The indices of the columns of words and tags."""
    if len(names) < 2:
        raise DataError(
            f"{file} has one column; needed are a word and its tag on each line, separated by a tab or spaces."
        )
    word = _index(file, "word", wanted.word, names) if wanted.word else int(names[0] == "id")
    if wanted.tag:
        return word, _index(file, "tag", wanted.tag, names)
    if tuple(names) == CONLLU:
        return word, CONLLU.index("upos")
    others = [column for column in range(len(names)) if column > word]
    # CoNLL-2003 has chunks before entities, both with such tags; other files have columns of notes after them.
    entities = [column for column in others if _entity_tags(row[column] for row in rows)]
    return word, (entities or others or [word - 1])[-1]


def _entity_tags(cells: Iterable[str]) -> bool:
    found = Counter("entity" if split_tag(cell) and cell != OUTSIDE else cell for cell in cells)
    return found["entity"] > 0 and found["entity"] + found[OUTSIDE] >= 0.99 * found.total()


def _index(file: Path, kind: str, name: str, names: Sequence[str]) -> int:
    if name in names:
        return names.index(name)
    if name.isdecimal() and 0 < int(name) <= len(names):
        return int(name) - 1
    raise DataError(
        f"{file} has the columns {', '.join(names)}, not {name!r} (train.objective.{kind}). Give one of them."
    )


def _records(file: Path, wanted: Layout, problems: Problems) -> tuple[Layout, Iterator[Sentence]]:
    rows = iter(records(file))
    head = list(islice(rows, 1))
    if not head:
        raise DataError(f"{file} is empty. Give a file of sentences with a list of words and a list of tags each.")
    record = head[0][1]
    lists = [key for key, value in record.items() if isinstance(value, list)]
    word = wanted.word or next((name for name in _WORDS if name in lists), "")
    tag = wanted.tag or next((name for name in _TAGS if name in lists and name != word), "")
    if word not in lists or tag not in lists:
        raise DataError(
            f"{file}: {head[0][0]} has the lists {', '.join(lists) or 'none'}; needed are one of words and one of "
            "tags. Name them (train.objective.word and tag)."
        )

    def sentences() -> Iterator[Sentence]:
        for place, record in chain(head, rows):
            words, tags = record.get(word), record.get(tag)
            if not isinstance(words, list) or not all(isinstance(each, str) for each in words):
                problems.add(f"records whose {word} is not a list of words", str(place))
            elif not isinstance(tags, list) or len(tags) != len(words):
                problems.add(f"records whose {tag} are not as many as their {word}", str(place))
            elif words:
                yield Sentence(words, ["" if each in (None, -100) else str(each) for each in tags], str(place))

    return Layout(word, tag), sentences()
