"""Reads questions with choices from files of records: tables and JSON, with or without the right choices.

What cannot be read is skipped, counted, and named by file and line; it is an error only if nothing remains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bertwright.core.errors import DataError
from bertwright.corpus.heldout import text_hash
from bertwright.examples.labelled.records import Record, records
from bertwright.examples.problems import Problems
from bertwright.tasks.choice.layout import Layout, choices_of, find_layout, no_column, value_of

_SAMPLE = 100
"""Records from which the columns of a file are found."""
_NONE = (None, "", "-", -1, "-1")
"""Values of labels that mean that there is none."""
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

Kind = Literal["name", "text", "number", "letter", "added"]


class Labelling(NamedTuple):
    """How labels say which choice is right."""

    kind: Kind
    """By the name that the record gives it, such as A; by its text, number or letter; or it is a further choice, whose
    text is in the column of the label."""
    first: int = 0
    """The number of the first choice."""


class Question(NamedTuple):
    """A question with its choices."""

    id: str
    context: str
    """The text that the question is about, or the question."""
    question: str
    """What begins each choice; "" if nothing does."""
    choices: tuple[str, ...]
    label: int | None
    """The index of the right choice; None: the file does not say, as a test set."""
    place: str
    """Where it is in the file, such as "line 7"."""

    @property
    def endings(self) -> list[str]:
        """The second text of each pair."""
        return [f"{self.question} {choice}".strip() for choice in self.choices]


def read_layout(file: Path, wanted: Layout) -> Layout:
    """The layout of a file; raises `DataError` if it is empty, or lacks a column."""
    some = [record for _, record in islice(records(file), _SAMPLE)]
    if not some:
        raise DataError(f"{file} is empty. Give a file with a text, its choices and the right one in each record.")
    return find_layout(file, some, wanted)


def read_choices(file: Path, wanted: Layout, problems: Problems) -> Iterator[Question]:
    """Yield the questions of a file in order, also those without a label; bad ones are counted in `problems`.

    Raises `DataError`, naming the file, if it lacks a column, or if its labels may be numbered from 0 or from 1.
    """
    layout = read_layout(file, wanted)
    labelling = find_labelling([file], layout) if layout.label else Labelling("text")
    for record in records(file):
        if question := _question(record, layout, labelling, problems):
            yield question


def read_labelled(file: Path, wanted: Layout, problems: Problems) -> Iterator[Question]:
    """As `read_choices`, but questions without a label are counted in `problems`, too."""
    if not read_layout(file, wanted).label:
        (_, record), *_ = islice(records(file), 1)
        raise no_column(file, "label", map(str, record), wanted.label)
    for question in read_choices(file, wanted, problems):
        if question.label is None:
            problems.add("questions without a label, as in a test set, are skipped", question.place)
        else:
            yield question


def find_labelling(files: Sequence[Path], layout: Layout) -> Labelling:
    """How the labels of some files with the same columns say which choice is right; raises `DataError` if they are
    numbers that may count from 0 or from 1."""
    if layout.adds_right:
        return Labelling("added")
    if layout.first is not None:
        return Labelling("number", layout.first)
    counts, labels = Counter[str](), 0
    for _, record in (each for file in files for each in records(file)):
        if (value := _label(record, layout)) is not None:
            labels += 1
            counts.update(_kinds(value, *choices_of(record, layout.choices)))
    kinds: tuple[Kind, ...] = ("name", "text", "number", "letter")
    kind = next((kind for kind in kinds if 2 * counts[kind] > labels), kinds[1])
    if kind == "number" and counts["zero"] == counts["last"]:
        raise DataError(
            f"{files[0]}: the labels in {layout.label!r} may count from 0 or from 1: of {labels:,}, "
            f"{counts['zero']:,} are 0, which only counting from 0 gives, and {counts['last']:,} are the number of "
            "choices, which only counting from 1 gives. Say which: "
            "train.objective.first=0 or 1."
        )
    return Labelling(kind, int(kind == "number" and counts["last"] > counts["zero"]))


def _kinds(value: Any, texts: Sequence[str], names: Sequence[str]) -> Iterator[Kind | Literal["zero", "last"]]:
    """Yield what a label may be."""
    if str(value) in names:
        yield "name"
    if value in texts:
        yield "text"
    if (number := _number(value)) is not None:
        yield "number"
        # Counting from 1, none is 0; counting from 0, none is the number of choices.
        if number in (0, len(texts)):
            yield "last" if number else "zero"
    if _letter(value) is not None:
        yield "letter"


def _question(at: Record, layout: Layout, labelling: Labelling, problems: Problems) -> Question | None:
    place, record = str(at[0]), at[1]
    context, question = layout.text(record, layout.context), layout.text(record, layout.question)
    if not context or question is None:
        problems.add(f"questions without a text in {', '.join((*layout.context, *layout.question))}", place)
        return None
    texts, names = choices_of(record, layout.choices)
    label = value = _label(record, layout)
    if value is not None:
        added = labelling.kind == "added"
        label = _add(texts, str(value), context) if added else _index(value, texts, names, labelling)
        if label is None or not texts[label]:
            problems.add("questions whose label is not one of their choices", f"{place}: {str(value)[:40]!r}")
            return None
    choices = [text for text in texts if text]
    if len(choices) < 2:
        problems.add("questions with fewer than two choices", place)
    elif len(set(choices)) < len(choices):
        problems.add("questions with two equal choices", place)
    else:
        right = None if label is None else choices.index(texts[label])
        given = record.get("id", record.get("idx"))
        return Question(place if given is None else str(given), context, question, tuple(choices), right, place)
    return None


def _label(record: Mapping[str, Any], layout: Layout) -> Any:
    """The label of a record; None if it has none."""
    value = value_of(record, layout.label) if layout.label else None
    value = value.strip() if isinstance(value, str) else value
    return None if value in _NONE else value


def _index(value: Any, texts: Sequence[str], names: Sequence[str], labelling: Labelling) -> int | None:
    """The index of the right choice; None if the label is none of the choices."""
    if labelling.kind in ("name", "text"):
        known = names if labelling.kind == "name" else texts
        return known.index(str(value)) if str(value) in known else None
    number = _number(value) if labelling.kind == "number" else _letter(value)
    index = -1 if number is None else number - labelling.first
    return index if 0 <= index < len(texts) else None


def _letter(value: Any) -> int | None:
    """The number of the letter that a label is; several letters are none."""
    text = str(value).upper()
    return _LETTERS.index(text) if len(text) == 1 and text in _LETTERS else None


def _number(value: Any) -> int | None:
    """The whole number that a label is, also as text, or as a fraction of 0, which tables with gaps have."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return int(number) if number.is_integer() else None


def _add(texts: list[str], right: str, context: str) -> int:
    """Put the right choice among the others, at a place that its texts determine, and return that."""
    place = text_hash((context, right)) % (len([text for text in texts if text]) + 1)
    texts[:] = [text for text in texts if text]
    texts.insert(place, right)
    return place
