"""Keeps the checkpoints of one start of training: written by rank 0, or by every rank its own tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bertwright.core.config import Identity
from bertwright.train.checkpoints import checkpoint as checkpoints
from bertwright.train.checkpoints.writers import ShardedWriter, Snapshot, Writer
from bertwright.train.setup.trainee import Trainee
from bertwright.train.state import State


@dataclass(frozen=True)
class CheckpointStore:
    """Writes checkpoints of a trainee and removes old ones."""

    folder: Path
    identity: Identity
    """Identity of the checkpoints."""
    keep: int
    """Number of newest checkpoints to keep."""
    trainee: Trainee
    writer: Writer | None
    """Writes checkpoints; None except on rank 0, unless all ranks write."""
    sharded: ShardedWriter | None
    """Writes checkpoints if each rank writes its own tensors."""
    saved: Callable[[Path], None]
    """Called on rank 0 with the path of each new checkpoint, and with the newest one again if training has diverged."""
    sync_rows: Callable[[], None]
    """Writes the metrics rows so far to disk."""

    def save(self, state: State, wait: bool = False) -> None:
        """Write a checkpoint, after syncing the rows so far to disk; all ranks must call this together.

        Writing may still be in progress on return, unless `wait` is set or it is the first checkpoint of the folder.
        """
        if self.sharded is not None:
            self._save_sharded(self.sharded, state, wait)
            return
        # On all ranks, before those that do not write return: gathering may need every one of them.
        weights, moments = self.trainee.engine.gather()
        if not self.trainee.ranks.first or self.writer is None:
            return
        # Rows after a saved one imply that a checkpoint exists (`metrics.saved_before`), so the first one must be
        # complete.
        wait = wait or not any(self.folder.glob("step-*"))
        average = self.trainee.averaging.state() if self.trainee.averaging else None
        self.writer.write(partial(self._write, state), Snapshot(weights, moments, average))
        if wait:
            self.writer.wait()

    def _save_sharded(self, sharded: ShardedWriter, state: State, wait: bool) -> None:
        ranks = self.trainee.ranks
        wait = ranks.any(wait or (ranks.first and not any(self.folder.glob("step-*"))))
        average = self.trainee.averaging.state() if self.trainee.averaging and ranks.first else None
        own = Snapshot(*self.trainee.engine.gather(own=True), average)
        sharded.write(partial(self._write_part, state), own, partial(self._publish, state), wait)

    def _write(self, state: State, tensors: Snapshot) -> None:
        # First, so that after a power cut no checkpoint exists without its rows.
        self.sync_rows()
        # The watchdog ends a process whose peer is lost, but a partially written checkpoint would be useless.
        with self.trainee.ranks.saving():
            self._finish(checkpoints.save(self.folder, self.identity, state, tensors))

    def _write_part(self, state: State, tensors: Snapshot) -> None:
        ranks = self.trainee.ranks
        checkpoints.save_part(self.folder, state, tensors, ranks.rank, ranks.world)

    def _publish(self, state: State) -> None:
        self.sync_rows()
        with self.trainee.ranks.saving():
            self._finish(checkpoints.publish(self.folder, self.identity, state, self.trainee.ranks.world))

    def _finish(self, checkpoint: Path) -> None:
        checkpoints.prune(self.folder, self.keep, checkpoint)
        self.saved(checkpoint)

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
