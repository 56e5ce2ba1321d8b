"""Finds the columns of questions with choices, by their names: those of SWAG, COPA, RACE, ARC and their like."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from bertwright.core.errors import DataError
from bertwright.core.json_values import parse_json

_CONTEXTS = (
    *("article", "passage", "context", "premise", "sent1", "story", "support", "paragraph", "document", "background"),
    *("ctx", "startphrase", "text", "body", "sentence", "goal", "prompt", "stem", "question_stem", "question.stem"),
    *("question", "query"),
)
"""Names of columns of first texts, in lower case; a file that has several has the first as its text."""
_QUESTIONS = ("sent2", "question", "question.stem", "query")
"""Names of columns that begin the second text, where another column is the first."""
_LISTS = ("choices", "options", "endings", "alternatives", "answers", "candidates", "question.choices")
"""Names of columns with a list of choices."""
_NUMBERED = ("ending", "choice", "option", "alternative", "answer", "solution", "sol", "opt", "op", "distractor", "")
"""What the names of columns with a choice each begin with, before a number or a letter."""
_ADDED = ("gold-ending", "correct_answer", "correct", "gold", "answer")
"""Names of columns with the text of the right choice, where the others have only wrong ones."""
_LABELS = (
    *("label", "labels", "answerkey", "answerindex", "answeridx", "answerid", "goldlabel", "gold", "correctanswer"),
    *("correctoption", "correctchoice", "correct", "answer", "target", "key", "cop"),
)
"""Names of columns of labels, in lower case and without separators, the most usual first."""
_NAMES = ("label", "key", "id")
"""Keys of what a list calls each of its choices."""
CAUSES: Mapping[str, str] = {"cause": "What was the cause of this?", "effect": "What happened as a result?"}
"""The words for COPA's questions in jiant (tasks/lib/copa.py), the toolkit of SuperGLUE."""


@dataclass(frozen=True)
class Layout:
    """Where questions and their choices are in a file; what is empty is found by the names of columns.

    The first text is that of the columns `context`, and the second that of the columns `question` and a choice, each
    joined by spaces.
    """

    context: tuple[str, ...] = ()
    question: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    """One column with a list, or a column for each choice."""
    label: str = ""
    """Empty, once found: the file has none, as a test set."""
    first: Literal[0, 1] | None = None
    """The number of the first choice in labels; None: found from them."""
    words: Mapping[str, str] = field(default_factory=dict)
    """What is read instead of a value of `context` or `question`, such as "cause"."""

    @property
    def adds_right(self) -> bool:
        """Whether the column of the label has the text of a further choice, the right one."""
        return bool(re.match("distractor", self.choices[0], re.IGNORECASE))

    def text(self, record: Mapping[str, Any], columns: Sequence[str]) -> str | None:
        """The text of some columns; None if one of them has none."""
        values = [value_of(record, name) for name in columns]
        if not all(isinstance(value, str) for value in values):
            return None
        return " ".join(self.words.get(value, value) for value in values).strip()


def find_layout(file: Path, some: Sequence[Mapping[str, Any]], wanted: Layout) -> Layout:
    """The layout of a file, from its first records; raises `DataError`, naming the file and its columns, if it lacks
    one other than that of the label."""
    names = {name.lower(): name for name in _names(some[0])}
    for key in ("context", "question", "choices"):
        for name in getattr(wanted, key):
            if name not in names.values():
                raise no_column(file, key, names.values(), name)
    choices = wanted.choices or _choices(names, some[0])
    if not choices:
        raise no_column(file, "choices", names.values())
    rest = [column for column in names.values() if column not in choices]
    usual = _ADDED if Layout(choices=choices).adds_right else _LABELS
    found = [column for name in usual for column in rest if name in (column.lower(), _compact(column))]
    if wanted.label:
        found = [name for name in names.values() if name == wanted.label]
    layout = replace(wanted, choices=choices, label=found[0] if found else "")
    if wanted.context:
        return layout
    texts = {
        name: column
        for name, column in names.items()
        if isinstance(value_of(some[0], column), str) and column not in (*choices, layout.label, *wanted.question)
    }
    context = [texts[name] for name in _CONTEXTS if name in texts][:1]
    if not context:
        raise no_column(file, "context", names.values())
    question = [texts[name] for name in _QUESTIONS if name in texts and texts[name] not in context][:1]
    layout = replace(layout, context=tuple(context), question=wanted.question or tuple(question))
    return layout if wanted.question or wanted.words else _of_causes(layout, some)


def _of_causes(layout: Layout, some: Iterable[Mapping[str, Any]]) -> Layout:
    """COPA's question, a cause or an effect, is asked after the premise, as jiant does."""
    if layout.question and all(layout.text(record, layout.question) in CAUSES for record in some):
        return replace(layout, context=(*layout.context, *layout.question), question=(), words=CAUSES)
    return layout


def value_of(record: Mapping[str, Any], name: str) -> Any:
    """The value of a column; "question.stem" is a key inside another, unless the file has a column of that name."""
    if name in record or "." not in name:
        return record.get(name)
    outer, inner = name.split(".", 1)
    inside = record.get(outer)
    return inside.get(inner) if isinstance(inside, dict) else None


def choices_of(record: Mapping[str, Any], columns: Sequence[str]) -> tuple[list[str], list[str]]:
    """The choices of a record, "" for missing ones, and their names if it gives them, such as A and B."""
    values = [value_of(record, name) for name in columns]
    if len(columns) > 1:
        return [_text(value) for value in values], []
    value = _parsed(values[0])
    if isinstance(value, dict):
        texts, names = value.get("text"), value.get("label")
    elif isinstance(value, list) and all(isinstance(each, dict) for each in value):
        texts = [each.get("text") for each in value]
        names = [next((each[key] for key in _NAMES if key in each), None) for each in value]
    else:
        texts, names = value, None
    if not isinstance(texts, list):
        return [], []
    known = isinstance(names, list) and len(names) == len(texts) and all(names)
    return [_text(each) for each in texts], [str(each) for each in names] if known and names else []


def _compact(name: str) -> str:
    return re.sub(r"[-_ .]", "", name.lower())


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else str(value) if isinstance(value, int | float) else ""


def _parsed(value: Any) -> Any:
    """A list that a table has as JSON."""
    if not isinstance(value, str) or not value.startswith("["):
        return value
    try:
        return parse_json(value)
    except ValueError:
        return value


def _names(record: Mapping[str, Any]) -> list[str]:
    """The names of columns, and of keys inside them."""
    inner = [f"{name}.{key}" for name, value in record.items() if isinstance(value, dict) for key in value]
    return [*map(str, record), *inner]


def _choices(names: Mapping[str, str], record: Mapping[str, Any]) -> tuple[str, ...]:
    """The columns of choices: one with a list, or several with consecutive numbers or letters; () if there are none."""
    for name in _LISTS:
        if name in names and len(choices_of(record, (names[name],))[0]) > 0:
            return (names[name],)
    for begin in _NUMBERED:
        found = {}
        for name, column in names.items():
            ending = re.fullmatch(rf"{begin}[-_ .]?([0-9]{{1,2}}|[a-h])", name)
            if ending and (begin or ending[1].isalpha()):
                found[ending[1]] = column
        ordered = sorted(found, key=lambda end: (len(end), end))
        places = [int(end) if end.isdecimal() else ord(end) - ord("a") for end in ordered]
        if len(places) > 1 and places == list(range(places[0], places[0] + len(places))) and places[0] in (0, 1):
            return tuple(found[end] for end in ordered)
    return ()


def no_column(file: Path, key: str, names: Iterable[str], missing: str = "") -> DataError:
    """The error for a file without a column, of which the user may have named another one, `missing`."""
    what = f"not {missing!r}" if missing else f"none of which is known to be that of the {key}"
    name = {"choices": '["A","B"]', "label": "NAME"}.get(key, '["NAME"]')
    return DataError(
        f"{file} has the columns {', '.join(map(repr, names))}, {what}. Name it: train.objective.{key}={name}."
    )
