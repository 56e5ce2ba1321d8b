"""Finds the labels of texts in files: their column, whether a text has several, and their names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bertwright.core.errors import DataError
from bertwright.examples.labelled.read import NO_LABEL
from bertwright.examples.labelled.records import TABLES, records
from bertwright.examples.labelled.several import SEPARATORS, divide_at, find_separator
from bertwright.finetune.tasks import Key

LABELS = ("label", "labels", "gold_label", "class", "category", "sentiment", "target", "score", "similarity", "rating")
"""Names of columns of labels, in lower case, the most usual first."""
_MOST_CLASSES = 1_000
_FEW = 50
"""Values up to which a column may be that of classes."""
_MARKS = {"0", "1", "-1", "0.0", "1.0", "True", "False"}
"""Values of a column that says whether a text has one label."""
_DECIMAL = re.compile(r"[-+]?[0-9]+(,[0-9]+)?")
"""A number as spreadsheets write it where the decimal sign is a comma; of several labels some value has three."""
Rows = Sequence[Mapping[str, Any]]


class LabelColumns(NamedTuple):
    """Where the labels of a file are."""

    column: str
    """Empty: each label has a column."""
    marks: tuple[str, ...] = ()
    """The columns of 0 and 1."""
    separator: str = ""
    """What stands between several labels, or "list"; "": a text has one."""


def find_labels(rows: Rows, column: str = "", several: bool | None = None) -> LabelColumns | None:
    """Where the labels of some records are; None if there is no such column. The user may name the `column`, and say
    whether a text may have `several` labels. Raises `DataError` if they may be numbers with decimal commas, too."""
    names = {str(name).lower(): str(name) for name in rows[0]}
    column = column or next((names[name] for name in LABELS if name in names), "")
    if not column:
        marks = tuple(str(name) for name in rows[0] if {str(row.get(name)) for row in rows} <= _MARKS)
        if len(marks) > 1 and several is not False:
            return LabelColumns("", marks)
        column = _few_values(rows)
        if not column:
            return None
    if several is False:
        return LabelColumns(column)
    values = [row[column] for row in rows if row.get(column) is not None]
    separator = find_separator(values)
    if several is None and separator == "," and all(_DECIMAL.fullmatch(str(value).strip()) for value in values):
        example = next(str(value).strip() for value in values if "," in str(value))
        raise DataError(
            f"the column {column!r} has values such as {example!r}, which may be numbers with a decimal comma or "
            "several labels. Write numbers with a decimal point, or say that these are labels: "
            "train.objective.several=true."
        )
    if several and not separator:
        separator = max(SEPARATORS, key=lambda each: sum(each in str(value) for value in values))
    return LabelColumns(column, (), separator)


def lacks_header(file: Path, rows: Rows, is_known: Callable[[str], bool]) -> bool:
    """Whether the first row of a table is data, from its `rows` as if it were: in a column with few values its value
    occurs again below it, and none of its values is a name of columns (`is_known`)."""
    if file.suffix not in TABLES or len(rows) < 2 or any(is_known(str(value)) for value in rows[0].values()):
        return False
    for name, value in rows[0].items():
        below = [str(row.get(name) or "") for row in rows[1:]]
        if value and value in below and len(_parts(below)) <= min(_FEW, max(len(below) // 2, 1)):
            return True
    return False


def name_labels(files: Sequence[Path], found: LabelColumns, numbered: bool) -> dict[str, Key]:
    """The keys `labels` and `several`: the names of the classes in their order, a single one if labels are numbers.
    Raises `DataError` if the values are no classes."""
    if found.marks:
        return {
            "labels": Key(list(found.marks), "the columns of 0 and 1"),
            "several": Key(True, "each label has a column"),
        }
    read = (record.get(found.column) for file in files for _, record in records(file, numbered=numbered))
    values = (value for value in read if value is not None)
    if found.separator:
        counts = Counter(part for value in values for part in set(divide_at(value, found.separator)))
        where = "lists" if found.separator == "list" else f"text with {found.separator!r} between labels"
        several = {"several": Key(True, f"the column {found.column!r} has {where}")}
    else:
        counts, several = Counter(str(value) for value in values if value not in NO_LABEL), {}
    numbers = [number for value in counts if (number := _number(value)) is not None]
    are_numbers = len(numbers) == len(counts)
    if len(counts) > 1 and are_numbers and any(number % 1 for number in numbers):
        what = f"a regression: the labels are {min(numbers):g} to {max(numbers):g}, with fractions"
        return {"labels": Key([found.column], what)}
    others = min((count for name, count in counts.items() if name != "-1"), default=0)
    # Where classes are numbered from 0, a -1 that is rarer than each of them means that there is none.
    unlabelled = counts.pop("-1") if "0" in counts and "-2" not in counts and 0 < counts["-1"] < others else 0
    names = sorted(counts, key=float if are_numbers else None)
    if not 1 < len(names) <= _MOST_CLASSES:
        few = "few" if len(names) < 2 else "many"
        what = f"the one value {names[0]!r}" if len(names) == 1 else f"{len(names):,} different values"
        raise DataError(
            f"the column {found.column!r} of {files[0]} has {what}: too {few} to be classes. Name the column of the "
            "labels: train.objective.label=NAME."
        )
    rarest = min(counts, key=lambda name: (counts[name], name))
    none = f"; -1, of {unlabelled:,}, is no label" if unlabelled else ""
    return {"labels": Key(names, f"found in the files; the rarest, {rarest}, has {counts[rarest]:,}{none}"), **several}


def _few_values(rows: Rows) -> str:
    """The one column whose values, or their parts, repeat as classes do; "" if there is none or there are several."""
    found = []
    for name in rows[0]:
        values = [row[name] for row in rows if row.get(name) is not None]
        if 1 < len(_parts(values)) <= min(_FEW, len(rows) // 5):
            found.append(name)
    return str(found[0]) if len(found) == 1 else ""


def _parts(values: Sequence[Any]) -> set[str]:
    """The different values of a column, or the different labels if a value may have several."""
    if not (separator := find_separator(values)):
        return set(map(str, values))
    return {part for value in values for part in divide_at(value, separator)}


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
