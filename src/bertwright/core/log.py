"""What a stage may tell its user: a sentence, progress, or a row of training metrics.

Stages receive a `Log` and never print. The command line gives them a live terminal or plain lines;
the Python API may pass anything with these three methods.
"""

from __future__ import annotations

import sys
import time
from typing import Any, Protocol


class Log(Protocol):
    """Three ways of saying something."""

    def say(self, message: str) -> None:
        """One sentence for the user."""

    def progress(self, stage: str, done: float, total: float, unit: str) -> None:
        """How far a stage is: `done` of `total` `unit`s; total 0 when unknown."""

    def record(self, row: dict[str, Any]) -> None:
        """One row of training metrics, as written to metrics.jsonl."""


class Silent:
    """Says nothing."""

    def say(self, message: str) -> None:
        """Ignore."""

    def progress(self, stage: str, done: float, total: float, unit: str) -> None:
        """Ignore."""

    def record(self, row: dict[str, Any]) -> None:
        """Ignore."""


class PlainLines:
    """Plain lines on standard error: for files, pipes and job logs. Progress at most every `seconds`."""

    def __init__(self, seconds: float = 10.0) -> None:
        self._seconds = seconds
        self._last: dict[str, float] = {}

    def say(self, message: str) -> None:
        """Print the sentence."""
        print(message, file=sys.stderr, flush=True)

    def progress(self, stage: str, done: float, total: float, unit: str) -> None:
        """Print how far the stage is, not too often and always at its end."""
        now = time.monotonic()
        if now - self._last.setdefault(stage, now) < self._seconds and done < total:
            return
        self._last[stage] = now
        share = f" ({done / total:.0%})" if total else ""
        self.say(f"{stage}: {done:,.0f} of {total:,.0f} {unit}{share}")

    def record(self, row: dict[str, Any]) -> None:
        """Print the row as key=value pairs."""
        self.say(" ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items()))


SILENT: Log = Silent()
