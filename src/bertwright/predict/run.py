"""Answers a file of questions, or lines of text, by a fine-tuned model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from bertwright.core.errors import DataError
from bertwright.examples.problems import Problems
from bertwright.predict.answerers import Spans, Tags
from bertwright.predict.records import RECORDS
from bertwright.predict.source import LINES, Answer, Answered, Answerer, Chunk, Lines, Source, Squad, is_squad, to_json
from bertwright.predict.words import WordColumns, has_tags
from bertwright.tasks.tagging.config import TaggedFiles
from bertwright.tasks.tagging.files import RECORDS as RECORDS_OF_WORDS


def open_source(file: Path, answerer: Answerer, names: tuple[str, str], problems: Problems) -> Source:
    """A file of questions for a model; `names` are the columns of words and tags that the user names.

    Raises `DataError`, naming the file, if it is in no format that the model answers.
    """
    if isinstance(answerer, Tags) and _has_columns(file, answerer.labels):
        return WordColumns(file, answerer.labels, names, problems)
    if file.suffix == LINES:
        return Lines(_lines(file), answerer, problems)
    if isinstance(answerer, Spans) and file.suffix == ".json" and is_squad(file):
        return Squad(file, problems)
    known = TaggedFiles.suffixes if isinstance(answerer, Tags) else (LINES, *RECORDS)
    if file.suffix not in known:
        raise DataError(f"{file} is in no format that this model answers. Give one of {', '.join(known)}.")
    return RECORDS[file.suffix](file, answerer, problems)


def _has_columns(file: Path, labels: Sequence[str]) -> bool:
    if file.suffix == LINES:
        return has_tags(file, labels)
    return file.suffix in TaggedFiles.suffixes and file.suffix not in RECORDS_OF_WORDS


def _lines(file: Path) -> Iterator[str]:
    with file.open(encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
        for number, line in enumerate(lines):
            yield line if number else line.removeprefix("\ufeff")


def answer_source(source: Source, answerer: Answerer) -> Answered:
    """Yield the parts of a source with the answers to their questions; None where there is no question.

    Raises `DataError` if none of what was read is a question.
    """
    read, asked = 0, 0
    for chunk in source.chunks():
        some = [question for question in chunk.questions if question is not None]
        read, asked = read + len(chunk.questions), asked + len(some)
        found = iter(answerer.answer(some))
        yield chunk, [None if question is None else next(found) for question in chunk.questions]
    if read and not asked:
        raise DataError(f"there is nothing to answer: all that was read are {answerer.lacking}. Give others.")


def write_json(answered: Iterable[tuple[Chunk, Sequence[Answer | None]]], out: BinaryIO) -> None:
    """Write an object of JSON a line for each question, null for one that cannot be read."""
    for _, answers in answered:
        for answer in answers:
            out.write(f"{to_json(dict(answer.details) if answer else None)}\n".encode("utf-8", "replace"))
