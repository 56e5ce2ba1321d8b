"""One start of training: what stays the same over all phases, what is observed, and where it is written down."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertwright.core.config import Identity
from bertwright.core.log import Log
from bertwright.train import checkpoint as checkpoints
from bertwright.train.asked import Asked
from bertwright.train.averaging.averaging import Averaging
from bertwright.train.expected_config import ExpectedLoss
from bertwright.train.forecast import Forecast
from bertwright.train.guard_config import GuardConfig
from bertwright.train.meter import Meter
from bertwright.train.metrics import Metrics
from bertwright.train.same_weights import check_same_weights
from bertwright.train.saving import Snapshot, Writer
from bertwright.train.state import State
from bertwright.train.trained import Trained

if TYPE_CHECKING:  # loaded where they are asked for
    from bertwright.train.observers.watch import Watch
    from bertwright.train.phases import Phase
    from bertwright.train.profiler import StepProfiler
    from bertwright.train.sharded import ShardedWriter

_PLACE = ("time", "phase", "step", "total_steps")
"""What says where a row belongs."""


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
    writer: Writer | None
    """What writes checkpoints; None on all ranks but the first, unless all write."""
    log: Log
    asked: Asked
    """What is asked of training from outside."""
    guard: GuardConfig
    """What is done about bad gradients and losses."""
    forecast: Forecast
    """What is left of the run."""
    saved: Callable[[Path], None]
    """Takes the path of each new checkpoint, on the first rank, and of the newest again where training has diverged."""
    meter: Meter
    """What is said of computing and memory."""
    profiler: StepProfiler | None = None
    """Of some steps of this start, where that is asked for."""
    watch: Watch | None = None
    """Who is shown the rows, on the first rank."""
    averaging: Averaging | None = None
    """The average of the weights, where one is kept."""
    sharded: ShardedWriter | None = None
    """What writes checkpoints where each rank writes its own tensors."""
    expected: tuple[ExpectedLoss, ...] = ()
    """Bands of the training loss."""
    compare_every: int = 0
    """Steps after which the weights of the ranks are compared, as before each checkpoint; 0: never."""

    def profiled(self, waited: float) -> AbstractContextManager[Trained]:
        """What to take a step with, under the profiler where there is one; `waited` are the seconds for its batch."""
        return self.profiler.step(self.trained, waited) if self.profiler else nullcontext(self.trained)

    def progress(self, what: str, done: float, total: float, unit: str) -> None:
        """Tell how much of how much is done."""
        self.log.progress(what, done, total, unit)

    def record(self, row: dict[str, Any]) -> None:
        """Write a row of metrics, on the first rank."""
        row = {name: json_number(value) for name, value in row.items()}
        if self.metrics is not None:
            self.metrics.write(row)
        if self.watch is not None:
            self.watch.record(row)
        self.log.record(row)

    def complete(self, total_steps: int, further: Mapping[str, Any]) -> None:
        """Give the newest row, that of `total_steps`, more values, on the first rank."""
        values = {name: json_number(value) for name, value in further.items()}
        row = self.metrics.complete(total_steps, values) if self.metrics is not None else None
        if row is None:
            return  # it was removed; the checkpoint has the scores all the same
        if self.watch is not None:
            self.watch.record({name: row[name] for name in _PLACE} | values, again=True)
        self.log.record(row)

    def compare_ranks(self, step: int, saving: bool) -> None:
        """Make sure that ranks which hold all weights hold the same after `step`, where due; all ranks together."""
        if self.trained.engine.whole and self.compare_every and (saving or step % self.compare_every == 0):
            check_same_weights(self.trained.ranks, self.trained.model, step)

    def save(self, state: State, wait: bool = False) -> None:
        """Write a checkpoint, all ranks together; the rows before it survive a power cut.

        It may be under way still when this returns, unless `wait` or it is the first of the folder.
        """
        if self.sharded is not None:
            self._save_sharded(self.sharded, state, wait)
            return
        # All ranks, before those that do not write leave: gathering may need every one of them.
        weights, moments = self.trained.engine.gather()
        if self.metrics is None or self.writer is None:
            return
        # Rows after one that was saved say that there is a checkpoint (`metrics.saved_before`): so there has to be.
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
        # The watchdog ends a process whose peer is lost, but a checkpoint that is half written helps nobody.
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
        # First, so that after a power cut no checkpoint exists whose rows are gone.
        if self.metrics is not None:
            self.metrics.sync()

    def _saved(self, checkpoint: Path) -> None:
        checkpoints.prune(self.folder, self.keep, checkpoint)
        self.saved(checkpoint)

    def write_graph(self, phase: Phase) -> None:
        """Write the network that a phase ends with as ONNX, on the first rank, where ONNX Runtime runs it."""
        trained, world = self.trained, self.trained.ranks.world
        if trained.exported is None or not trained.ranks.first:
            return
        batch = trained.read(trained.to_compute(phase.loader.step(0, 0, world))[0], phase.shape(world))
        trained.exported.write(self.folder.parent / f"phase-{phase.index}.onnx", batch)

    def check_written(self) -> None:
        """Raise what the disk has said to a checkpoint since the step before, on the rank that wrote it."""
        if self.sharded is not None:
            self.sharded.check()
        elif self.writer is not None:
            self.writer.check()

    def wait_written(self) -> None:
        """Wait for a checkpoint that is under way, on the ranks that write it; raises what the disk says."""
        if self.sharded is not None:
            self.sharded.finish()
        elif self.writer is not None:
            self.writer.wait()


def json_number(value: Any) -> Any:
    """JSON has no NaN and no infinity: they become null, and are shown as NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
