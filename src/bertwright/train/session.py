"""One start of training: what stays the same over all phases, what is observed, and where it is recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertwright.core.config import Identity
from bertwright.core.json_values import json_number
from bertwright.core.log import Log
from bertwright.train.averaging.averaging import Averaging
from bertwright.train.checkpoints import checkpoint as checkpoints
from bertwright.train.checkpoints.writers import Snapshot, Writer
from bertwright.train.config import ExpectedLoss, GuardConfig
from bertwright.train.machine.stop_requests import Asked
from bertwright.train.monitor.expected import ExpectedTime
from bertwright.train.monitor.metrics import Metrics
from bertwright.train.monitor.throughput import Meter
from bertwright.train.ranks.same_weights import check_same_weights
from bertwright.train.settings.forecast import Forecast
from bertwright.train.setup.trainee import Trained
from bertwright.train.state import State

if TYPE_CHECKING:  # imported only if requested
    from bertwright.train.checkpoints.writers import ShardedWriter
    from bertwright.train.monitor.observers.watch import Watch
    from bertwright.train.monitor.profiler import StepProfiler
    from bertwright.train.settings.phases import Phase

_PLACE = ("time", "phase", "step", "total_steps")
"""Keys that identify a row."""


@dataclass(frozen=True)
class Session:
    """Created once per start; the training loop writes rows and checkpoints through it."""

    trained: Trained
    folder: Path
    """Folder of the checkpoints."""
    identity: Identity
    """Identity of the checkpoints."""
    keep: int
    """Number of newest checkpoints to keep."""
    metrics: Metrics | None
    """Writes the rows; None except on rank 0."""
    writer: Writer | None
    """Writes checkpoints; None except on rank 0, unless all ranks write."""
    log: Log
    asked: Asked
    """External requests to stop or save."""
    guard: GuardConfig
    """How to handle bad gradients and losses."""
    forecast: Forecast
    """Forecast of the remaining time."""
    saved: Callable[[Path], None]
    """Called on rank 0 with the path of each new checkpoint, and with the newest one again if training has diverged."""
    meter: Meter
    """Measures throughput and memory."""
    profiler: StepProfiler | None = None
    """Profiler of some steps of this start, if requested."""
    watch: Watch | None = None
    """Observers that receive the rows, on rank 0."""
    averaging: Averaging | None = None
    """The average of the weights, if one is kept."""
    sharded: ShardedWriter | None = None
    """Writes checkpoints if each rank writes its own tensors."""
    expected: tuple[ExpectedLoss, ...] = ()
    """Expected bands of the training loss."""
    expected_time: ExpectedTime = field(default_factory=ExpectedTime)
    """Expected bands of the time of a step."""
    compare_every: int = 0
    """Steps between comparisons of the weights of all ranks, which also precede each checkpoint; 0: never."""

    def profiled(self, waited: float) -> AbstractContextManager[Trained]:
        """Return a context that yields what to train a step with, profiled if requested; `waited`: seconds spent
        waiting for its batch."""
        return self.profiler.step(self.trained, waited) if self.profiler else nullcontext(self.trained)

    def progress(self, what: str, done: float, total: float, unit: str) -> None:
        """Report progress."""
        self.log.progress(what, done, total, unit)

    def record(self, row: dict[str, Any]) -> None:
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

    def compare_ranks(self, step: int, saving: bool) -> None:
        """If due, check that all ranks hold the same weights after `step`; all ranks must call this together.

        Skipped for engines whose ranks do not hold all weights.
        """
        if self.trained.engine.whole and self.compare_every and (saving or step % self.compare_every == 0):
            check_same_weights(self.trained.ranks, self.trained.model, step)

    def save(self, state: State, wait: bool = False) -> None:
        """Write a checkpoint, after syncing the rows so far to disk; all ranks must call this together.

        Writing may still be in progress on return, unless `wait` is set or it is the first checkpoint of the folder.
        """
        if self.sharded is not None:
            self._save_sharded(self.sharded, state, wait)
            return
        # On all ranks, before those that do not write return: gathering may need every one of them.
        weights, moments = self.trained.engine.gather()
        if self.metrics is None or self.writer is None:
            return
        # Rows after a saved one imply that a checkpoint exists (`metrics.saved_before`), so the first one must be
        # complete.
        wait = wait or not any(self.folder.glob("step-*"))
        average = self.averaging.state() if self.averaging else None
        self.writer.write(partial(self._write, state), Snapshot(weights, moments, average))
        if wait:
            self.writer.wait()

    def _save_sharded(self, sharded: ShardedWriter, state: State, wait: bool) -> None:
        ranks = self.trained.ranks
        wait = ranks.any(wait or (ranks.first and not any(self.folder.glob("step-*"))))
        average = self.averaging.state() if self.averaging and ranks.first else None
        own = Snapshot(*self.trained.engine.gather(own=True), average)
        sharded.write(partial(self._write_part, state), own, partial(self._publish, state), wait)

    def _write(self, state: State, tensors: Snapshot) -> None:
        self._sync_rows()
        # The watchdog ends a process whose peer is lost, but a partially written checkpoint would be useless.
        with self.trained.ranks.saving():
            self._saved(checkpoints.save(self.folder, self.identity, state, tensors))

    def _write_part(self, state: State, tensors: Snapshot) -> None:
        ranks = self.trained.ranks
        checkpoints.save_part(self.folder, state, tensors, ranks.rank, ranks.world)

    def _publish(self, state: State) -> None:
        self._sync_rows()
        with self.trained.ranks.saving():
            self._saved(checkpoints.publish(self.folder, self.identity, state, self.trained.ranks.world))

    def _sync_rows(self) -> None:
        # First, so that after a power cut no checkpoint exists without its rows.
        if self.metrics is not None:
            self.metrics.sync()

    def _saved(self, checkpoint: Path) -> None:
        checkpoints.prune(self.folder, self.keep, checkpoint)
        self.saved(checkpoint)

    def write_graph(self, phase: Phase) -> None:
        """Write the network at the end of a phase as ONNX, on rank 0, if ONNX Runtime runs it."""
        trained, world = self.trained, self.trained.ranks.world
        if trained.exported is None or not trained.ranks.first:
            return
        batch = trained.read(trained.to_compute(phase.loader.step(0, 0, world))[0], phase.shape(world))
        trained.exported.write(self.folder.parent / f"phase-{phase.index}.onnx", batch)

    def check_written(self) -> None:
        """Raise any error of a checkpoint write that ended since the last step, on the rank that wrote it."""
        if self.sharded is not None:
            self.sharded.check()
        elif self.writer is not None:
            self.writer.check()

    def wait_written(self) -> None:
        """Wait for a checkpoint in progress, on the ranks that write it; raises any error of the write."""
        if self.sharded is not None:
            self.sharded.finish()
        elif self.writer is not None:
            self.writer.wait()
