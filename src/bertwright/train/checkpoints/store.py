"""Keeps the checkpoints of one start of training: written by rank 0, or by every rank its own tensors; synchronously,
or from a copy on a thread while training continues.

A thread is enough: hashing, writing and waiting for the disk release the GIL. At most one write is in progress; the
next one waits for it. Disk errors are raised in the training loop, at the next step at the latest.

If the engine shards the weights, each rank copies and writes only its own tensors. Once all ranks have written, rank 0
seals the checkpoint and gives it its name. Ranks communicate for this only while a write is in progress.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType

import torch
from torch import Tensor

from bertwright.core.config import Identity
from bertwright.train.checkpoints import checkpoint as checkpoints
from bertwright.train.checkpoints.tensor_files import Snapshot
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.setup.trainee import Trainee
from bertwright.train.state import State


class Writer:
    """Writes snapshots one after another, on a rank that writes; as a context manager it waits at the end for the last
    one."""

    def __init__(self, beside: bool) -> None:
        """`beside`: write on a thread, from copies in host memory, while training continues."""
        self.beside = beside
        self._copies: Snapshot | None = None
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def write(self, write: Callable[[Snapshot], None], tensors: Snapshot) -> None:
        """Call `write` now, or on a thread with a copy that is made now; raises any error of the previous write."""
        self.wait()
        if not self.beside:
            write(tensors)
            return
        # Reuse the memory of the previous copy: nothing reads it any more.
        self._copies = copy_to_host(tensors, self._copies)
        self.run(partial(write, self._copies))

    def run(self, job: Callable[[], None]) -> None:
        """Run `job` in the same way as a write, after any write in progress."""
        self.wait()
        if not self.beside:
            job()
            return
        # A daemon, so that a second Ctrl-C need not wait: a folder not yet renamed is not a checkpoint.
        self._thread = threading.Thread(target=self._run, args=(job,), name="writer", daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether a write is in progress."""
        return self._thread is not None and self._thread.is_alive()

    def check(self) -> None:
        """Raise the error of a finished write, if any."""
        if not self.busy:
            self.wait()

    def wait(self) -> None:
        """Wait for the write in progress, if any; raises its error."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self, job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:  # raised later in the training thread
            self._error = error

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.wait()
        elif issubclass(kind, Exception):
            # The error that ends training is the one reported; a failed write leaves the previous checkpoint in place.
            with suppress(Exception):
                self.wait()


def copy_to_host(tensors: Snapshot, before: Snapshot | None) -> Snapshot:
    """Copy tensors of any shape to host memory, reusing the memory of `before` where it fits."""
    held = before or Snapshot({}, {}, None)
    average = None if tensors.average is None else _copy(tensors.average, held.average or {})
    copy = Snapshot(_copy(tensors.weights, held.weights), _copy(tensors.moments, held.moments), average)
    if any(tensor.is_cuda for tensor in tensors.weights.values()):
        # The next step changes the weights: all copies must be complete by then.
        torch.cuda.current_stream().synchronize()
    return copy


@torch.no_grad()
def _copy(tensors: Mapping[str, Tensor], before: Mapping[str, Tensor]) -> dict[str, Tensor]:
    copies = {}
    for name, tensor in tensors.items():
        copy = before.get(name)
        if copy is None or copy.shape != tensor.shape or copy.dtype != tensor.dtype:
            # A GPU writes to pinned memory by itself, at the full speed of the bus.
            copy = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda)
        copies[name] = copy.copy_(tensor, non_blocking=tensor.is_cuda)
    return copies


class ShardedWriter:
    """Writes each rank's share of a snapshot. All ranks must call every method together; each raises errors of its own
    disk."""

    def __init__(self, ranks: Ranks, writer: Writer) -> None:
        self._ranks, self._writer = ranks, writer
        self._publish: Callable[[], None] | None = None
        """Turns the shares being written into a checkpoint."""

    def write(
        self, write: Callable[[Snapshot], None], tensors: Snapshot, publish: Callable[[], None], wait: bool
    ) -> None:
        """Call `write` for this rank's share and, once all ranks are done, `publish` on rank 0; `wait`: wait for
        both."""
        self.finish()
        self._writer.write(write, tensors)
        self._publish = publish
        if wait or not self._writer.beside:
            self.finish()

    def check(self) -> None:
        """Publish the checkpoint if all shares are written."""
        self._writer.check()
        if self._publish is not None and not self._ranks.any(self._writer.busy):
            self._writer.wait()
            self._hand_over()

    def finish(self) -> None:
        """Wait until the checkpoint in progress is complete."""
        self._writer.wait()
        if self._publish is not None:
            self._ranks.barrier()
            self._hand_over()
            self._writer.wait()

    def _hand_over(self) -> None:
        publish, self._publish = self._publish, None
        if self._ranks.first and publish is not None:
            self._writer.run(publish)


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
