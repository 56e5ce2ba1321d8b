"""The rows of metrics of a run as columns of numbers, and the part of them that a screen can show.

A chart of some hundred pixels cannot show 500,000 values: the rows of one bucket of steps become their lowest, highest
and mean value. The width of a bucket is a power of two, so that new rows change the last bucket only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json

from bertwright.watch.tail import Tail

AXES = ("total_steps", "tokens_seen", "seconds")
"""What a chart may have at its horizontal axis; they only grow."""
_TIME = "time"
_EXACT = (*AXES, _TIME)
"""Columns in float64; float32 is enough to draw the others."""
_NOTES = ("outside_band", "stopped")
_MOST_COLUMNS, _MOST_NOTES = 200, 100


class Note(NamedTuple):
    """What a row says in words."""

    row: int
    step: int
    text: str


class View(NamedTuple):
    """The part of the rows that a chart asks for."""

    axis: str
    begin: float
    end: float
    width: int
    """Buckets, at most twice as many."""
    keys: Sequence[str]
    known: tuple[int, int, float] | None = None
    """Generation, number of rows and width of a bucket of an earlier answer to the same view; then only buckets that
    have changed are given."""


class Rows:
    """The rows of one file. Not for several threads at once."""

    def __init__(self, path: Path) -> None:
        self.tail = Tail(path)
        self.count, self.damaged = 0, 0
        self.last: dict[str, Any] = {}
        """The last row, as it is written."""
        self.notes: list[Note] = []
        self._columns = {name: np.empty(0, np.float64) for name in _EXACT}
        self._line = np.empty(0, np.int64)
        """The number of each row's line."""

    @property
    def keys(self) -> list[str]:
        """The names of all values of the rows."""
        return [name for name in self._columns if name not in _EXACT]

    @property
    def first_time(self) -> float | None:
        """When the first row was written, in seconds since 1970."""
        return _finite(self._columns[_TIME][0]) if self.count else None

    @property
    def version(self) -> tuple[int, int]:
        """Changes with the rows."""
        return self.tail.generation, self.count

    def read(self, most: int = 2**23) -> bool:
        """Read new lines, at most about `most` bytes; returns whether there is more to read."""
        lines_before = len(self.tail)
        change = self.tail.read(most)
        if change.kept < lines_before:
            self._cut(change.kept)
        self._append(change.kept, change.lines)
        return bool(change.lines) and self.tail.read_bytes < self.tail.size

    def phases(self) -> list[tuple[int, float]]:
        """The number of each phase, and the step after which it begins."""
        if not self.count or "phase" not in self._columns:
            return []
        phase, steps = self._columns["phase"][: self.count], self._columns["total_steps"]
        begins = [0, *(np.flatnonzero(np.diff(phase)) + 1).tolist()]
        return [(int(phase[i]), float(steps[i - 1]) if i else 0.0) for i in begins if math.isfinite(phase[i])]

    def extent(self, axis: str) -> tuple[float, float]:
        """The first and the last value of an axis."""
        values = self._axis(axis)
        return (float(values[0]), float(values[-1])) if len(values) else (0.0, 0.0)

    def reduce(self, view: View) -> dict[str, Any]:
        """The buckets of a view: `x`, the last value of the axis in each, and for each key `low`, `high` and `mean`
        (None: no value). `rows` and `generation` identify what it was made of, `size` is the width of a bucket; `from`
        is the first bucket given, -1 if all are."""
        values, keys = self._axis(view.axis), [key for key in view.keys if key in self._columns]
        size = _bucket(view.end - view.begin, view.width)
        # One more row on each side, so that lines leave the chart at its edges.
        begin = max(0, int(np.searchsorted(values, view.begin)) - 1)
        end = min(len(values), int(np.searchsorted(values, view.end, "right")) + 1)
        first = -1.0
        if view.known and view.known[0] == self.tail.generation and view.known[2] == size and view.known[1] > begin:
            row = min(view.known[1], len(values)) - 1
            first = math.floor(values[row] / size)
            begin = max(begin, int(np.searchsorted(values, first * size)))
        found: dict[str, Any] = {"generation": self.tail.generation, "rows": self.count, "size": size, "from": first}
        bucket = np.floor(values[begin:end] / size)
        starts = np.flatnonzero(np.diff(bucket, prepend=-1.0)) if len(bucket) else np.empty(0, np.int64)
        ends = np.append(starts[1:], len(bucket)) - 1
        found["bucket"] = bucket[starts].tolist()
        found["x"] = values[begin:end][ends].tolist() if len(bucket) else []
        found["keys"] = {key: _reduced(self._columns[key][begin:end], starts) for key in keys}
        return found

    def row(self, number: int) -> dict[str, Any]:
        """One row as it is written; empty if the file has changed meanwhile."""
        return _parsed(self.tail.line(int(self._line[number]))) if 0 <= number < self.count else {}

    def at(self, axis: str, value: float) -> int:
        """The number of the row nearest to a value of an axis; -1 without rows."""
        values = self._axis(axis)
        right = int(np.searchsorted(values, value))
        near = [i for i in (right - 1, right) if 0 <= i < len(values)]
        return min(near, key=lambda i: abs(values[i] - value), default=-1)

    def _axis(self, axis: str) -> NDArray[np.float64]:
        return self._columns[axis if axis in AXES else AXES[0]][: self.count]

    def _cut(self, lines: int) -> None:
        self.count = int(np.searchsorted(self._line[: self.count], lines))
        for column in self._columns.values():
            column[self.count :] = np.nan
        self.notes = [note for note in self.notes if note.row < self.count]
        self.last = self.row(self.count - 1)

    def _append(self, first: int, lines: Sequence[bytes]) -> None:
        """Add the rows of lines that follow each other from number `first`."""
        rows, numbers = list[dict[str, Any]](), list[int]()
        step = float(self._columns[AXES[0]][self.count - 1]) if self.count else -math.inf
        for number, line in enumerate(lines, first):
            row = _parsed(line)
            own = _number(row.get(AXES[0]))
            if own is None or own < step:
                self.damaged += 1
                continue
            step = own
            for name in _NOTES:
                if isinstance(text := row.get(name), str) and len(self.notes) < _MOST_NOTES:
                    self.notes.append(Note(self.count + len(rows), int(step), text))
            if "stopped" not in row:  # that one says why training stopped, and describes no steps
                rows.append(row)
                numbers.append(number)
        if rows:
            self._add(rows, numbers)

    def _add(self, rows: Sequence[dict[str, Any]], numbers: Sequence[int]) -> None:
        begin, end = self.count, self.count + len(rows)
        while end > len(self._line):
            self._grow()
        self._line[begin:end] = numbers
        names = dict.fromkeys(name for row in rows for name in row)
        for name in names:
            if name not in self._columns and len(self._columns) < _MOST_COLUMNS:
                self._columns[name] = np.full(len(self._line), np.nan, np.float32)
        for name, column in self._columns.items():
            values = [row.get(name) for row in rows]
            if name == _TIME:
                column[begin:end] = [_seconds(value) for value in values]
            elif name in names or name in AXES:
                with np.errstate(over="ignore"):
                    column[begin:end] = _numbers(values)
        for name in AXES:
            # They only grow, also where a row lacks one: charts are found by bisection.
            column = self._columns[name]
            before = column[begin - 1] if begin else 0.0
            column[begin:end] = np.maximum.accumulate(np.fmax(np.nan_to_num(column[begin:end]), before))
        self.count, self.last = end, rows[-1]

    def _grow(self) -> None:
        room = max(1024, 2 * len(self._line))

        def grown(values: NDArray[Any]) -> NDArray[Any]:
            more = np.full(room, np.nan if values.dtype != np.int64 else -1, values.dtype)
            more[: len(values)] = values
            return more

        self._line = grown(self._line)
        self._columns = {name: grown(column) for name, column in self._columns.items()}


def _bucket(span: float, width: int) -> float:
    """The width of a bucket, a power of two of which at most `width` fit into the span."""
    return 2.0 ** math.ceil(math.log2(max(span, 1e-9) / max(1, width)))


def _reduced(values: NDArray[np.floating[Any]], starts: NDArray[np.int64]) -> dict[str, Any]:
    """The lowest, highest and mean values from each start to the next, without those that are not numbers."""
    if not len(starts):
        return {"low": [], "high": [], "mean": []}
    counts = np.add.reduceat(np.isfinite(values).astype(np.int64), starts)
    with np.errstate(all="ignore"):
        finite = np.where(np.isfinite(values), values, np.nan)
        low, high = np.fmin.reduceat(finite, starts), np.fmax.reduceat(finite, starts)
        mean = np.add.reduceat(np.nan_to_num(finite).astype(np.float64), starts) / counts
    if (low == high)[counts > 0].all():  # one row a bucket
        return {"mean": _short(mean)}
    return {"low": _short(low), "high": _short(high), "mean": _short(mean)}


def _short(values: NDArray[Any]) -> list[float | None]:
    """Five digits are more than a chart shows."""
    return [float(f"{value:.5g}") if math.isfinite(value) else None for value in values.tolist()]


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        row = from_json(line, allow_inf_nan=False, cache_strings="keys")
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return _finite(float(value))
    except OverflowError:
        return None


def _numbers(values: Sequence[Any]) -> Any:
    """The values in float64; NaN for what is no number."""
    try:
        return np.array(values, np.float64)
    except (TypeError, ValueError, OverflowError):  # a text among them, or a list
        return [math.nan if (known := _number(value)) is None else known for value in values]


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _seconds(text: Any) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (TypeError, ValueError, OverflowError):
        return math.nan
