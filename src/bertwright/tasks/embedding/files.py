"""Reads pairs of texts that belong together from files of records, with texts that do not belong to the first.

What cannot be read is skipped, counted, and named by file and line; it is an error only if nothing remains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from bertwright.core.errors import DataError
from bertwright.core.json_values import parse_json
from bertwright.examples.labelled.records import records
from bertwright.examples.problems import Problems

_ANCHORS = ("anchor", "query", "question", "sentence1", "text1", "title")
_POSITIVES = ("positive", "pos", "answer", "document", "passage", "context", "response", "sentence2", "text2")
_NEGATIVES = ("negatives", "negative", "neg", "hard_negatives")
"""Names of columns in data sets of sentence-transformers, in lower case, the most usual first."""
_GROUPS = ("group",)
_NUMBERED = ("negative_", "negative")
"""What the names of columns with one negative each begin with, before their numbers."""


class Pair(NamedTuple):
    """Two texts that belong together."""

    anchor: str
    positive: str
    negatives: tuple[str, ...]
    """Texts that do not belong to the anchor, though they look like it."""
    group: str
    """Pairs of one group are never each other's negatives; "" if the file has no groups."""

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts, the anchor first, then the positive."""
        return (self.anchor, self.positive, *self.negatives)


@dataclass(frozen=True)
class Layout:
    """The columns of a file; what is empty is found by its name, and negatives and groups may be absent."""

    anchor: str = ""
    positive: str = ""
    negatives: tuple[str, ...] = ()
    """One column with a list of texts or a text, or a column for each."""
    group: str = ""


def _find_layout(file: Path, names: Sequence[str], wanted: Layout) -> Layout:
    """The columns of a file that has these `names`; raises `DataError`, naming them, if it lacks one."""
    for name in (wanted.anchor, wanted.positive, *wanted.negatives, wanted.group):
        if name and name not in names:
            raise DataError(f"{file} has the columns {_listed(names)}, not {name!r}. Name one of those.")
    lower = {name.lower(): name for name in names}
    given = {wanted.anchor, wanted.positive, *wanted.negatives, wanted.group}

    def find(usual: Sequence[str]) -> str:
        return next((lower[name] for name in usual if name in lower and lower[name] not in given), "")

    anchor, positive = wanted.anchor or find(_ANCHORS), wanted.positive or find(_POSITIVES)
    for key, found in (("anchor", anchor), ("positive", positive)):
        if not found:
            raise DataError(
                f"{file} has the columns {_listed(names)}, none of which is known to be that of the {key}. Name it: "
                f"train.objective.{key}=NAME."
            )
    several = [lower[name] for name in lower for begin in _NUMBERED if name.removeprefix(begin).isdecimal()]
    one = find(_NEGATIVES)
    negatives = wanted.negatives or ((one,) if one else tuple(dict.fromkeys(several)))
    return Layout(anchor, positive, negatives, wanted.group or find(_GROUPS))


def read_layout(file: Path, wanted: Layout) -> Layout:
    """The columns of a file; raises `DataError` if it is empty, or lacks one."""
    for _, record in records(file):
        return _find_layout(file, [str(name) for name in record], wanted)
    raise DataError(f"{file} is empty. Give a file with two texts that belong together in each record.")


def read_pairs(file: Path, wanted: Layout, problems: Problems) -> Iterator[Pair]:
    """Yield the pairs of a file in order; bad ones are counted in `problems`. Raises `DataError` if it lacks a column
    or is empty."""
    layout = read_layout(file, wanted)
    for place, record in records(file):
        anchor, positive = (_text(record.get(name)) for name in (layout.anchor, layout.positive))
        negatives = [text for name in layout.negatives for text in _texts(record.get(name))]
        if not anchor or not positive:
            problems.add(f"pairs without a text in {layout.anchor} and {layout.positive}", str(place))
        elif anchor == positive:
            problems.add("pairs of two equal texts", str(place))
        elif None in negatives:
            problems.add(f"pairs whose {', '.join(layout.negatives)} are not texts", str(place))
        else:
            # A text that is right, or the anchor itself, is no negative; nor is one any twice.
            others = tuple(dict.fromkeys(text for text in negatives if text and text not in (anchor, positive)))
            group = record.get(layout.group) if layout.group else None
            yield Pair(anchor, positive, others, "" if group is None else str(group))


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _texts(value: Any) -> list[str | None]:
    """The texts of a value, which a table may have as JSON; None for one that is no text."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = parse_json(value)
        except ValueError:
            return [value.strip()]
    if value is None:
        return []
    values = value if isinstance(value, list) else [value]
    return [each.strip() if isinstance(each, str) else None for each in values]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
