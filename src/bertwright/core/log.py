"""What a stage may tell its user: a sentence, progress, or a row of training metrics.

Stages receive a `Log` and never print. The command line gives them a live terminal or plain lines;
the Python API may pass anything with these three methods.
"""

from __future__ import annotations

from typing import Any, Protocol


class Log(Protocol):
    """Three ways of saying something."""

    def say(self, message: str) -> None:
        """One sentence for the user."""

    def progress(self, stage: str, done: float, total: float, unit: str, **counts: float) -> None:
        """How far a stage is: `done` of `total` `unit`s, total 0 when unknown; `counts` are shown as rates."""

    def record(self, row: dict[str, Any]) -> None:
        """One row of training metrics, as written to metrics.jsonl."""


class Silent:
    """Says nothing."""

    def say(self, message: str) -> None:
        """Ignore."""

    def progress(self, stage: str, done: float, total: float, unit: str, **counts: float) -> None:
        """Ignore."""

    def record(self, row: dict[str, Any]) -> None:
        """Ignore."""


SILENT: Log = Silent()
