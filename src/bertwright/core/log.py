"""How a stage reports to its user: a sentence, progress, or a row of training metrics.

Stages receive a `Log` and never print. The command line passes a live terminal or plain lines;
Python callers may pass any object with these three methods.
"""

from __future__ import annotations

from typing import Any, Protocol


class Log(Protocol):
    """The interface through which stages report to the user."""

    def say(self, message: str) -> None:
        """Show one sentence to the user."""

    def progress(self, stage: str, done: float, total: float, unit: str, **counts: float) -> None:
        """Show that `done` of `total` `unit`s are finished (`total` 0: unknown); `counts` are shown as rates."""

    def record(self, row: dict[str, Any]) -> None:
        """Show one row of training metrics, as written to metrics.jsonl."""


class Silent:
    """A log that discards everything."""

    def say(self, message: str) -> None:
        """Ignore."""

    def progress(self, stage: str, done: float, total: float, unit: str, **counts: float) -> None:
        """Ignore."""

    def record(self, row: dict[str, Any]) -> None:
        """Ignore."""


SILENT: Log = Silent()
"""A log that shows nothing, for `run(..., log=SILENT)`."""
