"""The interface of observers, and the data that they receive."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

Row = Mapping[str, Any]
"""A row of metrics: numbers, texts, flags, and None for values that are not finite."""


class Observer(Protocol):
    """Receives rows of metrics, and displays them somewhere. Raises any error that occurs there."""

    @property
    def seen(self) -> int:
        """The step, counted over all phases, up to which it has rows from earlier starts; it receives only later
        ones."""

    def record(self, row: Row) -> None:
        """Receive one more row, of a later step than all before, or additional values of the last row."""

    def close(self, finished: bool) -> None:
        """End this start: no more rows follow; `finished` says whether training has ended."""


@dataclass(frozen=True)
class Observed:
    """The observed training, the same at every start."""

    name: str
    """Display name: the name of the run folder."""
    key: str
    """Unique key of the training: hexadecimal digits."""
    folder: Path
    """Folder in which an observer may keep files, in a subfolder for its kind."""
    settings: Mapping[str, Any]
    """All settings that determine the result, as JSON."""


def numbers_of(row: Row) -> dict[str, float]:
    """Return the values of a row that can be plotted over its step, without texts, flags and None."""
    return {
        name: float(value)
        for name, value in row.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return each setting by its dotted key, as in a recipe; lists of tables are numbered."""
    found: dict[str, str] = {}
    for name, value in settings.items():
        key = f"{prefix}{name}"
        if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            value = {str(number): item for number, item in enumerate(value)}
        if isinstance(value, Mapping):
            found |= flat(value, f"{key}.")
        else:
            found[key] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return found
