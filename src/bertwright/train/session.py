"""One start of training: what stays the same over all phases, where it is written down, and who is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Identity
from bertwright.core.log import Log
from bertwright.objectives.objective import judged_by
from bertwright.train import checkpoint as checkpoints
from bertwright.train.checkpoint import State
from bertwright.train.forecast import Forecast
from bertwright.train.metrics import Metrics
from bertwright.train.step import Trained


@dataclass(frozen=True)
class Session:
    """Made once a start; the loop writes rows and checkpoints through it."""

    trained: Trained
    folder: Path
    """Of the checkpoints."""
    identity: Identity
    """Of the checkpoints."""
    keep: int
    """Newest checkpoints kept."""
    metrics: Metrics | None
    """Where rows go; None on all ranks but the first."""
    log: Log
    stop_requested: Callable[[], bool]
    """Whether a signal asked to stop."""
    forecast: Forecast
    """What is left of the run."""
    saved: Callable[[Path], None]
    """Takes the path of each new checkpoint, on the first rank."""

    def progress(self, what: str, done: float, total: float, unit: str) -> None:
        """Tell how much of how much is done."""
        self.log.progress(what, done, total, unit)

    def record(self, row: dict[str, Any]) -> None:
        """Write a row of metrics, on the first rank."""
        if self.metrics is not None:
            self.metrics.write(row)
        self.log.record(row)

    def save(self, state: State) -> None:
        """Write a checkpoint, all ranks together; the rows before it survive a power cut."""
        weights, moments = self.trained.engine.gather()
        if self.metrics is None:
            return
        self.metrics.sync()
        with self.trained.ranks.saving():
            saved = checkpoints.save(self.folder, self.identity, state, weights, moments)
        checkpoints.prune(self.folder, self.keep, saved, judged_by(self.trained.objective))
        self.saved(saved)
