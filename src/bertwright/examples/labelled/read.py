"""Labelled texts of files: which files, and of each record the texts and the number of its class."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from bertwright.core.errors import DataError, RecipeError
from bertwright.examples.labelled.records import SUFFIXES, records
from bertwright.examples.labelled.tasks import Columns, LabelledTexts

_NO_LABEL = (None, "", "-")
"""What stands in the place of a label where there is none: in test sets, and where annotators did not agree."""
_NO_CLASS = (*_NO_LABEL, -1, "-1")
"""The same where labels are classes, which are counted from 0."""
_WHOLE = re.compile("[-+]?[0-9]+")


class Text(NamedTuple):
    """One example."""

    first: str
    second: str
    """"" where texts are single."""
    label: float
    """The number of its class, or the number that it is labelled with."""


@dataclass
class Omitted:
    """Records of a file that are no examples."""

    unlabelled: int = 0
    """Without a label."""
    incomplete: list[str] = field(default_factory=list)
    """Where those stand that lack a column, as some lines of GLUE's own files do."""


class Files(NamedTuple):
    """The files of a data set."""

    train: tuple[Path, ...]
    heldout: tuple[Path, ...]
    """Empty: a share of the training examples is held out."""
    unread: tuple[Path, ...]
    """Such as test sets, whose labels are not published."""


def find_files(path: Path, texts: LabelledTexts, key: str) -> Files:
    """The files of the folder, or the one file, that `key` of the recipe names; by their names, not by their content.

    `RecipeError` where there is none to train on.
    """
    if path.is_file() and path.suffix in SUFFIXES:
        return Files((path,), (), ())
    if not path.exists():
        raise RecipeError(f"{key}: {path} does not exist. Give a folder or file of labelled texts.")
    files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES) if path.is_dir() else []
    train = _named(files, ("train",))
    if not train:
        found = ", ".join(file.name for file in files) or "nothing of that kind"
        raise RecipeError(
            f"{key}: {path} has no file to train on: texts with labels are expected in a file, or in a folder in files "
            f"called train…, as {', '.join(SUFFIXES)}; there is {found}."
        )
    heldout = _named([file for file in files if file not in train], texts.heldout)
    return Files(train, heldout, tuple(file for file in files if file not in {*train, *heldout}))


def _named(files: Sequence[Path], names: Sequence[str]) -> tuple[Path, ...]:
    """The files whose names begin with one of the names, or else those that have one for a word."""
    for begins in ("^", r"(?:^|[-_.])"):
        pattern = re.compile(rf"{begins}(?:{'|'.join(names)})(?:[-_.]|$)", re.IGNORECASE)
        if found := tuple(file for file in files if pattern.search(file.stem)):
            return found
    return ()


def read_texts(file: Path, texts: LabelledTexts, omitted: Omitted) -> Iterator[Text]:
    """The examples of a file in order; `omitted` gathers what is none.

    `DataError` naming the record where a label is none of `texts.labels`, or a column is not there in the first one.
    """
    columns: Columns | None = None
    for place, record in records(file, texts.without_header):
        columns = columns or _columns(file, record, texts)
        values = [record.get(name) for name in columns.names[:-1]]
        if any(value is None for value in values) or columns.label not in record:
            omitted.incomplete.append(place)
        elif _is_missing(record[columns.label], texts.labels):
            omitted.unlabelled += 1
        else:
            if wrong := next((value for value in values if not isinstance(value, str)), None):
                raise DataError(f"{file}: {place} has {str(wrong)[:40]!r} where a text is expected. Mend it.")
            first, second = values if columns.second else (values[0], "")
            yield Text(str(first), str(second), label_of(record[columns.label], texts, f"{file}: {place}"))


def _is_missing(value: Any, labels: Sequence[str]) -> bool:
    if len(labels) == 1:
        return value in _NO_LABEL
    # A class may be called what elsewhere says that there is none.
    return value in _NO_CLASS and str(value) not in labels


def label_of(value: Any, texts: LabelledTexts, place: str) -> float:
    """The number of the class that a file's `value` names, or the number that it is.

    A name comes first, also where the file has it as a number. Where names are numbers themselves, such as -1 and 1 or
    1 to 5, nothing else is one: a 0 would be another class than it says.
    """
    labels = texts.labels
    if len(labels) == 1:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise DataError(f"{place} has the label {value!r}, which is no number. Mend it, or name classes (labels).")
        return number
    text = str(value)
    if text in labels:
        return float(labels.index(text))
    numbered = not any(_WHOLE.fullmatch(label) for label in labels)
    # No longer than a number of a class is: Python refuses to read thousands of digits.
    if numbered and len(text) < 10 and text.isascii() and text.isdigit() and int(text) < len(labels):
        return float(text)
    known = ", ".join(f"{number} {label}" if numbered else label for number, label in enumerate(labels))
    raise DataError(
        f"{place} has the label {text[:40]!r}, which is none of the classes ({known}). Mend it, or name other classes "
        "(train.objective.labels, or another task)."
    )


def _columns(file: Path, record: Mapping[str, Any], texts: LabelledTexts) -> Columns:
    for columns in texts.columns:
        if all(name in record for name in columns.names):
            return columns
    # A test set has texts and no labels: the columns are right, and there is nothing to learn from.
    wanted = " or ".join(", ".join(map(repr, columns.names)) for columns in texts.columns)
    raise DataError(
        f"{file} has the columns {', '.join(map(repr, record))}; needed are {wanted}. Name them (train.objective.text, "
        "pair and label), give another task, or take the file away."
    )
