"""What an observer is, and what it is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

Row = Mapping[str, Any]
"""A row of metrics: numbers, texts, flags, and None for what is no number."""


class Observer(Protocol):
    """Is given rows of metrics, and shows them somewhere. Whatever goes wrong there it raises."""

    @property
    def seen(self) -> int:
        """The step over all phases up to which it has rows already, from an earlier start; it is given later ones."""

    def record(self, row: Row) -> None:
        """Take one more row, of a later step than all before, or more values of the last one."""

    def close(self, finished: bool) -> None:
        """No more rows come in this start; `finished` says whether training has ended."""


@dataclass(frozen=True)
class Observed:
    """The training that is watched, the same at every start."""

    name: str
    """For people: the name of the run folder."""
    key: str
    """For programs: hexadecimal digits that no other training has."""
    folder: Path
    """Where an observer may keep files, in a folder of its kind."""
    settings: Mapping[str, Any]
    """Every setting that decides the result, as JSON."""


def numbers_of(row: Row) -> dict[str, float]:
    """The values of a row that can be drawn over its step; texts, flags and what is no number are left out."""
    return {
        name: float(value)
        for name, value in row.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
