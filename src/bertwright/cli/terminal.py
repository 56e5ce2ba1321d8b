"""What a run shows to the user. The only file that imports rich."""

from __future__ import annotations

import sys
import time
from collections import deque
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from bertwright.cli.text import HEADER, losses, progress_words, row_line, shorten, visible
from bertwright.core.numbers import time_left
from bertwright.core.secrets import hide_secrets
from bertwright.core.signals import check_stop

if TYPE_CHECKING:  # loading rich takes longer than checking a recipe
    from rich.console import Console
    from rich.progress import Progress, TaskID

_WINDOW = 30.0
"""Seconds over which rates are averaged."""
_NAME, _BAR = 9, 12
"""Columns of the name of a bar and of the bar: the least that leaves 80 columns enough for step, time left and loss."""


class Throughput:
    """Rates over the last half minute, of the work done and of anything else that is counted."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, dict[str, float]]] = deque()

    def describe(self, now: float, done: float, total: float, unit: str, counts: dict[str, float]) -> str:
        """Text such as "0:14:02 left, 5.2 MB/s, 1,210 documents/s"; "" until a second has passed.

        `now` is in seconds, and not earlier than in the previous call; with `total` 0, the time left is unknown.
        """
        so_far = {unit: done, **counts}
        if self._seen and done < self._seen[-1][1].get(unit, done):  # another task list of the same stage
            self._seen.clear()
        self._seen.append((now, so_far))
        # Keep two whatever their age, or a slow task list would never have a rate.
        while now - self._seen[0][0] > _WINDOW and len(self._seen) > 2:
            self._seen.popleft()
        then, before = self._seen[0]
        # A rate over less than a second fluctuates too much to be readable.
        if now - then < 1:
            return ""
        rates = {name: (value - before.get(name, 0)) / (now - then) for name, value in so_far.items()}
        parts = [f"{rate:,.0f} {name}/s" if rate >= 100 else f"{rate:.1f} {name}/s" for name, rate in rates.items()]
        if total and rates[unit]:
            parts.insert(0, f"{time_left((total - done) / rates[unit])} left")
        return ", ".join(parts)


def _console_with_bars() -> tuple[Console, Progress | None]:
    """A console for standard error, since standard output is for results that a pipe or --json may read, and its
    bars if it is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        return console, None
    # Without markup: rich would take [...] in a name or a message for its own, and drop it.
    bars = Progress(
        TextColumn("{task.description}", justify="right", markup=False, table_column=Column(width=_NAME)),
        BarColumn(bar_width=_BAR),
        TextColumn("{task.fields[words]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
        console=console,
        transient=True,
    )
    return console, bars


class Terminal:
    """Shows a run on standard error: sentences, an aligned row per held-out score, and progress.

    Progress is a live bar on a terminal. Elsewhere (files, job logs), and where a Python that only trains has no rich,
    it is a plain line at intervals.
    """

    def __init__(self, seconds: float = 10.0) -> None:
        """`seconds` is the minimum time between two plain lines of progress."""
        self._console: Console | None = None
        self._bars: Progress | None = None
        if find_spec("rich"):
            self._console, self._bars = _console_with_bars()
        self._tasks: dict[str, TaskID] = {}
        self._throughputs: dict[str, Throughput] = {}
        self._rows: dict[str, str] = {}
        self._seconds, self._last = seconds, time.monotonic()
        self._header = False

    @property
    def live(self) -> bool:
        """Whether progress is a bar, and not lines."""
        return self._bars is not None

    def __enter__(self) -> Terminal:
        if self._bars:
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bars:
            self._bars.stop()

    def say(self, message: str) -> None:
        """Print a sentence above the bars; a safe point for signals (`check_stop`)."""
        check_stop()
        text = visible(hide_secrets(message))
        if self._console is None:
            print(text, file=sys.stderr)
            return
        # rich wraps between words, a terminal inside them. A word longer than a line (an address) must stay copyable.
        unwrapped = self._bars is None or max(map(len, text.split()), default=0) > self._console.width
        self._console.print(text, markup=False, soft_wrap=unwrapped)

    def progress(self, stage: str, done: float, total: float, unit: str, **counts: float) -> None:
        """Update the stage's bar, with its rates and the time left; a finished bar is removed.

        For training the text comes from the last metrics row, which covers the entire run. A safe point for signals.
        """
        check_stop()
        throughput = self._throughputs.setdefault(stage, Throughput())
        rates = throughput.describe(time.monotonic(), done, total, unit, counts)
        self.show(stage, done, total, self._rows.get(stage) or ", ".join(filter(None, [unit, rates])))

    def show(self, stage: str, done: float, total: float, words: str) -> None:
        """Update the bar of a stage with these words after its numbers (`total` 0: unknown); it is removed at its end.
        Elsewhere than on a terminal, a line at intervals."""
        of = f"{done:,.0f} of {total:,.0f} {words}" if total else f"{done:,.0f} {words}" if done else words
        finished = bool(total) and done >= total
        if finished:  # another run may follow, such as one with another seed
            self._rows.pop(stage, None)
            self._throughputs.pop(stage, None)
        if self._console is None or self._bars is None:
            # A job log is read afterwards: lines at intervals show the progress, one per step would fill it.
            if not finished and time.monotonic() - self._last > self._seconds:
                self._last = time.monotonic()
                self.say(f"{stage}: {of}")
            return
        if finished:
            if stage in self._tasks:
                self._bars.remove_task(self._tasks.pop(stage))
            return
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, words="", total=total or None)
        room = self._console.width - _NAME - _BAR - 3  # a space between columns, and one at the end
        self._bars.update(self._tasks[stage], completed=done, total=total or None, words=shorten(visible(of), room))

    def record(self, row: dict[str, Any]) -> None:
        """Update the training bar; a row with held-out scores also becomes a line of the table."""
        stage = f"phase {row['phase']}"
        self._rows[stage] = f"steps, {progress_words(row)}"
        self.show(stage, row["step"], row["steps"], self._rows[stage])
        if len(losses(row)) < 2:
            return
        if not self._header:
            self._header = True
            self.say(HEADER)
        # Only rows with held-out scores: the others are on the bar and in metrics.jsonl.
        self.say(row_line(row))
