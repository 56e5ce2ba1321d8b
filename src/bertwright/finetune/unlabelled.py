"""Reads what a fine-tuned model is to answer, without labels: texts, pairs of texts, or words.

lines      .txt and standard input: a text a line, the two of a pair separated by a tab; or words separated by spaces
records    .tsv, .csv, .jsonl, .json, .parquet, .arrow: columns by name, as in the files for training
words      .conll, .conllu, ...: a word a line, an empty line after each sentence
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from bertwright.core.errors import DataError
from bertwright.examples.labelled.config import SUFFIXES
from bertwright.examples.labelled.records import reading, records
from bertwright.finetune.guess import find_texts
from bertwright.tasks.tagging.config import TaggedFiles
from bertwright.tasks.tagging.files import read_words

Question = str | tuple[str, str]
"""A text, or a pair of texts."""
LINES = ".txt"


def read_questions(file: Path, text: str = "", pair: str = "") -> Iterator[Question]:
    """The texts or pairs of a file in order; `text` and `pair` name their columns, which are guessed otherwise.

    Raises `DataError`, naming the file, if it is in no known format or has no such column.
    """
    if file.suffix == LINES:
        with reading(file), file.open(encoding="utf-8-sig") as lines:
            yield from questions_of(lines)
        return
    if file.suffix not in SUFFIXES:
        raise DataError(f"{file} is in no format of texts. Give one of {LINES}, {', '.join(SUFFIXES)}.")
    rows = iter(records(file))
    head = list(islice(rows, 100))
    if not head:
        raise DataError(f"{file} has no records. Give a file with a text in each.")
    text, pair = find_texts(file, [record for _, record in head], text, pair)
    for place, record in chain(head, rows):
        values = [record.get(name) for name in (text, pair) if name]
        if wrong := [value for value in values if not isinstance(value, str)]:
            raise DataError(f"{file}: {place} has {str(wrong[0])[:40]!r} where a text is expected. Correct it.")
        yield (str(values[0]), str(values[1])) if pair else str(values[0])


def questions_of(lines: Iterable[str]) -> Iterator[Question]:
    """The text of each line, or its two texts if it has a tab."""
    for line in lines:
        first, tab, second = line.rstrip("\r\n").partition("\t")
        yield (first, second) if tab else first


def read_sentences_of_words(file: Path, word: str = "") -> Iterator[list[str]]:
    """The words of each sentence of a file; `word` names their column, which is guessed otherwise.

    Raises `DataError`, naming the file, as `read_questions`.
    """
    if file.suffix == LINES:
        with reading(file), file.open(encoding="utf-8-sig") as lines:
            yield from words_of(lines)
    elif file.suffix in TaggedFiles.suffixes:
        yield from read_words(file, word)
    else:
        raise DataError(f"{file} is in no format of words. Give one of {', '.join(TaggedFiles.suffixes)}.")


def words_of(lines: Iterable[str]) -> Iterator[list[str]]:
    """The words of each line, which spaces separate."""
    return (line.split() for line in lines)
