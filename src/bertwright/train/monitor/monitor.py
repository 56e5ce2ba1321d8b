"""What is measured in one start of training, and who is shown it: the log, metrics rows, observers, a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bertwright.core.json_values import json_number
from bertwright.core.log import Log
from bertwright.train.config import ExpectedLoss
from bertwright.train.monitor.expected import OUTSIDE, ExpectedTime, outside
from bertwright.train.monitor.guesses import Guesses
from bertwright.train.monitor.metrics import Metrics
from bertwright.train.monitor.throughput import Throughput
from bertwright.train.settings.forecast import Forecast
from bertwright.train.setup.trainee import Trainee

if TYPE_CHECKING:  # imported only if requested
    from bertwright.train.monitor.observers.watch import Watch
    from bertwright.train.monitor.profiler import StepProfiler
    from bertwright.train.settings.phases import Phase

_PLACE = ("time", "phase", "step", "total_steps")
"""Keys that identify a row."""


@dataclass(frozen=True)
class Monitor:
    """Receives measurements; ranks other than 0 only log, silently."""

    log: Log
    metrics: Metrics | None
    """Writes the rows; None except on rank 0."""
    throughput: Throughput
    """Operations and memory of a step."""
    forecast: Forecast
    """Forecast of the remaining time."""
    expected: tuple[ExpectedLoss, ...]
    """Expected bands of the training loss."""
    expected_time: ExpectedTime
    """Expected bands of the time of a step."""
    guesses: Guesses
    """Asks the network at checkpoints."""
    watch: Watch | None = None
    """Observers that receive the rows, on rank 0."""
    profiler: StepProfiler | None = None
    """Profiler of some steps of this start, if requested."""

    def profile_step(self, trainee: Trainee, waited: float) -> AbstractContextManager[Trainee]:
        """Return a context that yields what to train a step with, profiled if requested; `waited`: seconds spent
        waiting for its batch."""
        return self.profiler.step(trainee, waited) if self.profiler else nullcontext(trainee)

    def progress(self, what: str, done: float, total: float, unit: str) -> None:
        """Report progress."""
        self.log.progress(what, done, total, unit)

    def check_expected(self, row: dict[str, Any], steps: int, phase: Phase, seconds: Sequence[float]) -> None:
        """Log when the loss or the time of a step is outside its expected band; the row then says so of the loss.
        `steps` is the number of steps of the row, `seconds` has the time of each, scaled to a full batch."""
        if message := outside(self.expected, row, steps):
            self.log.say(f"train: {message}")
            row[OUTSIDE] = message
        if message := self.expected_time.outside(phase, seconds):
            self.log.say(f"train: {message}")

    def record(self, row: Mapping[str, Any]) -> None:
        """Write a row of metrics, on rank 0."""
        row = {name: json_number(value) for name, value in row.items()}
        if self.metrics is not None:
            self.metrics.write(row)
        if self.watch is not None:
            self.watch.record(row)
        self.log.record(row)

    def complete(self, total_steps: int, further: Mapping[str, Any]) -> None:
        """Add values to the newest row if it is that of `total_steps`, on rank 0."""
        values = {name: json_number(value) for name, value in further.items()}
        row = self.metrics.complete(total_steps, values) if self.metrics is not None else None
        if row is None:
            return  # the row was removed; the checkpoint has the scores in any case
        if self.watch is not None:
            self.watch.record({name: row[name] for name in _PLACE} | values, again=True)
        self.log.record(row)

    def sync(self) -> None:
        """Write the rows so far to disk."""
        if self.metrics is not None:
            self.metrics.sync()
        self.guesses.sync()
