"""Reads questions about texts from files: SQuAD's JSON, versions 1.1 and 2.0, and the rows of its data sets.

    .json               {"data": [{"paragraphs": [{"context", "qas": [{"id", "question", "answers"}]}]}]}
    .jsonl, .parquet, .arrow    rows with context, question and answers = {"text": [...], "answer_start": [...]}

A question without answers has none in the text (version 2.0). An answer that is not in the text where the file says is
looked for elsewhere in it; if it is nowhere the question is skipped, counted and named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bertwright.core.errors import DataError
from bertwright.core.json_values import parse_json, without_surrogates
from bertwright.corpus.characters import compose, composed
from bertwright.examples.labelled.records import reading, records
from bertwright.examples.problems import Problems


class Answer(NamedTuple):
    """An answer in a text."""

    text: str
    begin: int
    """Its first character."""

    @property
    def end(self) -> int:
        """The character after its last one."""
        return self.begin + len(self.text)


class Question(NamedTuple):
    """A question about a text."""

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...]
    """The correct answers; none if the text does not answer it."""
    labelled: bool
    """Whether the file says what the answers are: test sets do not."""


def read_questions(file: Path, problems: Problems, answers: bool = True) -> Iterator[Question]:
    """Yield the questions of a file in order, those to be answered without `answers`; what cannot be read is counted in
    `problems`.

    Raises `DataError` naming the file if it is of no known form.
    """
    for place, row in _squad(file, problems) if file.suffix == ".json" else _rows(file):
        # Where an answer is to be found, it is cut out of the text as it is written.
        if question := _question(place, _normal(row) if answers else {**row, "answers": None}, problems):
            yield question


def _squad(file: Path, problems: Problems) -> Iterator[tuple[str, Mapping[str, Any]]]:
    with reading(file):
        text = file.read_text(encoding="utf-8-sig")
    try:
        content = parse_json(text)
    except ValueError as error:
        raise DataError(f"{file} is not valid JSON ({error}). Correct it.") from error
    articles = content.get("data") if isinstance(content, dict) else None
    if not isinstance(articles, list):
        raise DataError(
            f"{file} is not in SQuAD's format, an object with a list of articles under the key data. Correct it, or "
            "give rows with the keys context, question and answers (.jsonl)."
        )
    for number, article in enumerate(articles, 1):
        for at, paragraph in enumerate(_list(article, "paragraphs", f"article {number:,}", problems), 1):
            place = f"article {number:,}, paragraph {at:,}"
            for question in _list(paragraph, "qas", place, problems):
                known = question if isinstance(question, dict) else {}
                yield f"{place}, question {known.get('id', '?')}", {"context": paragraph.get("context"), **known}


def _list(value: Any, key: str, place: str, problems: Problems) -> list[Any]:
    found = value.get(key) if isinstance(value, dict) else None
    if isinstance(found, list):
        return found
    problems.add(f"parts without a list {key}", place)
    return []


def _rows(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, (place, row) in enumerate(records(file, normal=False)):
        # Of a later row it is a fault of that row, not of the file.
        if not number and (missing := [key for key in ("context", "question") if key not in row]):
            raise DataError(
                f"{file}: {place} has the keys {', '.join(row)}, but no {' and no '.join(missing)}. Give rows with "
                "context, question and answers."
            )
        answers = row.get("answers")
        if isinstance(answers, dict):
            texts, begins = answers.get("text") or [], answers.get("answer_start") or []
            answers = [{"text": text, "answer_start": begin} for text, begin in zip(texts, begins, strict=False)]
        yield str(place), {"id": str(place), **row, "answers": answers}


def _question(place: str, row: Mapping[str, Any], problems: Problems) -> Question | None:
    context, question, given = row.get("context"), row.get("question"), row.get("answers")
    if not isinstance(context, str) or not isinstance(question, str) or not question.strip():
        problems.add("questions without a text or a question", place)
        return None
    context = without_surrogates(context)
    answers, lost = list[Answer](), False
    # What is plausible for an impossible question is no answer.
    for each in () if row.get("is_impossible") is True or not isinstance(given, list) else given:
        text, begin = (each.get("text"), each.get("answer_start")) if isinstance(each, dict) else (None, None)
        answer = _answer(context, text, begin) if isinstance(text, str) and text.strip() else None
        if answer is None:
            lost = True
            continue
        if not isinstance(begin, int) or answer.begin != begin:
            problems.add("answers that are elsewhere in their text than the file says", place)
        answers.append(answer)
    if lost:
        others = "other answers are read" if answers else "none of their answers is"
        problems.add(f"questions with an answer that is not in their text; {others}", place)
        if not answers:
            return None
    identifier = str(row.get("id") or place)
    return Question(identifier, without_surrogates(question), context, tuple(answers), isinstance(given, list))


def _normal(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row in the normal form of the corpus, with the places of its answers in it."""
    context, given = row.get("context"), row.get("answers")
    if not isinstance(context, str):
        return row
    answers = [_moved(context, each) for each in given] if isinstance(given, list) else given
    return {**row, "context": compose(context), "question": composed(row.get("question")), "answers": answers}


def _moved(context: str, answer: Any) -> Any:
    if not isinstance(answer, dict):
        return answer
    begin = answer.get("answer_start")
    if isinstance(begin, int) and 0 <= begin <= len(context):
        begin = len(compose(context[:begin]))
    return {**answer, "text": composed(answer.get("text")), "answer_start": begin}


def _answer(context: str, text: str, begin: Any) -> Answer | None:
    """The answer where the file says, or the nearest occurrence in the text."""
    text = without_surrogates(text)
    if isinstance(begin, int) and begin >= 0 and context[begin : begin + len(text)] == text:
        return Answer(text, begin)
    wanted = begin if isinstance(begin, int) else 0
    found = [match.start() for match in re.finditer(re.escape(text), context)]
    return Answer(text, min(found, key=lambda at: abs(at - wanted))) if found else None
