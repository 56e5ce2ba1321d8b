"""Reads labelled texts from files: the texts and the class number of each record."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bertwright.core.errors import DataError
from bertwright.examples.labelled.config import Columns, LabelledTexts
from bertwright.examples.labelled.records import Record, records
from bertwright.examples.labelled.several import divide
from bertwright.examples.problems import Problems

NO_LABEL = (None, "", "-")
"""Label values that mean "no label": in test sets, and where annotators did not agree."""
_NO_CLASS = (*NO_LABEL, -1, "-1")
"""The same if labels are classes, which are numbered from 0."""
_WHOLE = re.compile("[-+]?[0-9]+")
_YES_AND_NO = {"0": False, "1": True, "0.0": False, "1.0": True, "false": False, "true": True}


class Text(NamedTuple):
    """One example."""

    first: str
    second: str
    """Empty if the example is a single text."""
    label: float | tuple[int, ...]
    """Class number, or regression target; the numbers of the labels, if it may have several."""


def read_texts(file: Path, texts: LabelledTexts, problems: Problems) -> Iterator[Text]:
    """Yield the examples of a file in order; skipped records are counted in `problems`.

    Raises `DataError` if the first record lacks a required column, or, naming the record, if a label is not one of
    `texts.labels` or a value is not text.
    """
    yield from texts_of(file, records(file, texts.without_header, texts.numbered), texts, problems)


def texts_of(file: Path, some: Iterable[Record], texts: LabelledTexts, problems: Problems) -> Iterator[Text]:
    """As `read_texts`, from records of the file that are read already."""
    columns: Columns | None = None
    for place, record in some:
        columns = columns or columns_of(file, record, texts)
        values = [record.get(name) for name in columns.texts]
        of_labels = columns.labels or (columns.label,)
        if any(value is None for value in values) or any(name not in record for name in of_labels):
            problems.add("texts that lack a column", str(place))
        elif any(is_missing(record[name], texts, bool(columns.labels)) for name in of_labels):
            problems.add("texts without a label", str(place))
        else:
            for value in values:
                if not isinstance(value, str):
                    raise DataError(f"{file}: {place} has {str(value)[:40]!r} where a text is expected. Correct it.")
            first, second = values if columns.second else (values[0], "")
            yield Text(str(first), str(second), _label(record, columns, texts, f"{file}: {place}"))


def is_missing(value: Any, texts: LabelledTexts, marks: bool = False) -> bool:
    """Whether a file's label `value` means that the record has not been labelled; `marks`: its column is one of 0 and
    1 for a single label."""
    if len(texts.labels) == 1:
        return value in NO_LABEL
    if marks:
        return value in _NO_CLASS
    if texts.several:
        # Empty text, or an empty list, says that none of the labels fits.
        return value in _NO_CLASS and value != ""
    # A class may have a name that elsewhere means "no label".
    return value in _NO_CLASS and str(value) not in texts.labels


def _label(record: Mapping[str, Any], columns: Columns, texts: LabelledTexts, place: str) -> float | tuple[int, ...]:
    """The label of a record, or the numbers of its labels."""
    if columns.labels:
        return tuple(
            number for number, name in enumerate(columns.labels) if _is_set(record[name], f"{place}, column {name!r},")
        )
    value = record[columns.label]
    if not texts.several:
        return label_of(value, texts, place)
    parts = divide(value, lambda part: _number(part, texts.labels) is not None)
    return tuple(sorted({int(label_of(part, texts, place)) for part in parts}))


def _is_set(value: Any, place: str) -> bool:
    """Whether a column of 0 and 1 has a 1."""
    if (text := str(value).strip().lower()) in _YES_AND_NO:
        return _YES_AND_NO[text]
    raise DataError(
        f"{place} has {text[:40]!r} where 1 (the text has this label) or 0 is expected. Correct it, or name the column "
        "of the labels (train.objective.label)."
    )


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
    if (found := _number(text, labels)) is not None:
        return float(found)
    numbered = _are_numbered(labels)
    known = ", ".join(f"{number} {label}" if numbered else label for number, label in enumerate(labels))
    raise DataError(
        f"{place} has the label {text[:40]!r}, which is not one of the classes ({known}). Correct it, or define other "
        "classes (train.objective.labels, or another task)."
    )


def _number(text: str, labels: Sequence[str]) -> int | None:
    """The number of the class of that name or number; None if there is no such class."""
    if text in labels:
        return labels.index(text)
    # Limited to the length of a class number: Python refuses to parse thousands of digits.
    if _are_numbered(labels) and len(text) < 10 and text.isascii() and text.isdigit() and int(text) < len(labels):
        return int(text)
    return None


def _are_numbered(labels: Sequence[str]) -> bool:
    """Whether class numbers are accepted beside names."""
    return not any(_WHOLE.fullmatch(label) for label in labels)


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
