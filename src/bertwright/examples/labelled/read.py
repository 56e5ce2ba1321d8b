"""Reads labelled texts from files: the texts and the class number of each record."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bertwright.core.errors import DataError
from bertwright.examples.labelled.config import Columns, LabelledTexts
from bertwright.examples.labelled.records import Record, records
from bertwright.examples.problems import Problems

NO_LABEL = (None, "", "-")
"""Label values that mean "no label": in test sets, and where annotators did not agree."""
_NO_CLASS = (*NO_LABEL, -1, "-1")
"""The same if labels are classes, which are numbered from 0."""
_WHOLE = re.compile("[-+]?[0-9]+")


class Text(NamedTuple):
    """One example."""

    first: str
    second: str
    """Empty if the example is a single text."""
    label: float
    """Class number, or regression target."""


def read_texts(file: Path, texts: LabelledTexts, problems: Problems) -> Iterator[Text]:
    """Yield the examples of a file in order; skipped records are counted in `problems`.

    Raises `DataError` if the first record lacks a required column, or, naming the record, if a label is not one of
    `texts.labels` or a value is not text.
    """
    yield from texts_of(file, records(file, texts.without_header), texts, problems)


def texts_of(file: Path, some: Iterable[Record], texts: LabelledTexts, problems: Problems) -> Iterator[Text]:
    """As `read_texts`, from records of the file that are read already."""
    columns: Columns | None = None
    for place, record in some:
        columns = columns or columns_of(file, record, texts)
        values = [record.get(name) for name in columns.names[:-1]]
        if any(value is None for value in values) or columns.label not in record:
            problems.add("texts that lack a column", str(place))
        elif is_missing(record[columns.label], texts.labels):
            problems.add("texts without a label", str(place))
        else:
            for value in values:
                if not isinstance(value, str):
                    raise DataError(f"{file}: {place} has {str(value)[:40]!r} where a text is expected. Correct it.")
            first, second = values if columns.second else (values[0], "")
            yield Text(str(first), str(second), label_of(record[columns.label], texts, f"{file}: {place}"))


def is_missing(value: Any, labels: Sequence[str]) -> bool:
    """Whether a file's label `value` means that the record has none."""
    if len(labels) == 1:
        return value in NO_LABEL
    # A class may have a name that elsewhere means "no label".
    return value in _NO_CLASS and str(value) not in labels


def label_of(value: Any, texts: LabelledTexts, place: str) -> float:
    """The class number for a file's label `value`, or the value itself as a number for regression.

    Class names take precedence, even if the file stores the label as a number. If class names are themselves numbers,
    such as -1 and 1 or 1 to 5, class numbers are not accepted: a 0 would mean another class than the file does.
    """
    labels = texts.labels
    if len(labels) == 1:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise DataError(
                f"{place} has the label {value!r}, which is not a number. Correct it, or define classes (labels)."
            )
        return number
    text = str(value)
    if text in labels:
        return float(labels.index(text))
    numbered = not any(_WHOLE.fullmatch(label) for label in labels)
    # Limited to the length of a class number: Python refuses to parse thousands of digits.
    if numbered and len(text) < 10 and text.isascii() and text.isdigit() and int(text) < len(labels):
        return float(text)
    known = ", ".join(f"{number} {label}" if numbered else label for number, label in enumerate(labels))
    raise DataError(
        f"{place} has the label {text[:40]!r}, which is not one of the classes ({known}). Correct it, or define other "
        "classes (train.objective.labels, or another task)."
    )


def columns_of(file: Path, names: Collection[str], texts: LabelledTexts) -> Columns:
    """The columns of a file that has the columns `names`; raises `DataError` if some are lacking."""
    for columns in texts.columns:
        if all(name in names for name in columns.names):
            return columns
    # This includes a test set, which has the text columns but no labels.
    wanted = " or ".join(", ".join(map(repr, columns.names)) for columns in texts.columns)
    raise DataError(
        f"{file} has the columns {', '.join(map(repr, names))}; needed are {wanted}. Set their names "
        "(train.objective.text, pair and label), set another task, or remove the file."
    )
