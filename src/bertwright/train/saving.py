"""How a checkpoint is written: while training waits, or beside it from a copy, by a thread.

A thread is enough: hashing, writing and waiting for the disk happen outside Python's lock. At most one write is under
way; the next one waits for it. What the disk says comes up in training, at the next step at the latest.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import TracebackType

import torch
from torch import Tensor


@dataclass(frozen=True)
class Snapshot:
    """The tensors of a checkpoint, of any shape, by name."""

    weights: Mapping[str, Tensor]
    moments: Mapping[str, Tensor]
    average: Mapping[str, Tensor] | None = None
    """The state of an average of the weights, where one is kept."""


class Writer:
    """Writes snapshots one after another, on the rank that writes; a block waits at its end for the last one."""

    def __init__(self, beside: bool) -> None:
        """`beside`: by a thread, from copies in the memory of the processor, while training goes on."""
        self.beside = beside
        self._copies: Snapshot | None = None
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def write(self, write: Callable[[Snapshot], None], tensors: Snapshot) -> None:
        """Have `write` do it: at once, or of a copy that is made at once; raises what the write before it raised."""
        self.wait()
        if not self.beside:
            write(tensors)
            return
        # The memory of the copy before is taken again: nothing reads it any more.
        self._copies = copied(tensors, self._copies)
        self.run(partial(write, self._copies))

    def run(self, job: Callable[[], None]) -> None:
        """Have `job` done as writing is, after what is under way."""
        self.wait()
        if not self.beside:
            job()
            return
        # A daemon, so that a second Ctrl-C need not wait: what is not renamed yet is no checkpoint.
        self._thread = threading.Thread(target=self._run, args=(job,), name="writer", daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether something is under way."""
        return self._thread is not None and self._thread.is_alive()

    def check(self) -> None:
        """Raise what a write that is over has raised."""
        if not self.busy:
            self.wait()

    def wait(self) -> None:
        """Wait for the write that is under way, if one is; raises what it raised."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self, job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:  # raised where training can see it
            self._error = error

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.wait()
        elif issubclass(kind, Exception):
            # What ends training is told; a write that fails beside it leaves the checkpoint before.
            with suppress(Exception):
                self.wait()


def copied(tensors: Snapshot, before: Snapshot | None) -> Snapshot:
    """A copy of tensors of any shape in the memory of the processor; that of `before` is used again where it fits."""
    held = before or Snapshot({}, {}, None)
    average = None if tensors.average is None else _copied(tensors.average, held.average or {})
    copy = Snapshot(_copied(tensors.weights, held.weights), _copied(tensors.moments, held.moments), average)
    if any(tensor.is_cuda for tensor in tensors.weights.values()):
        # The next step moves the weights: all of them must have arrived by then.
        torch.cuda.current_stream().synchronize()
    return copy


@torch.no_grad()
def _copied(tensors: Mapping[str, Tensor], before: Mapping[str, Tensor]) -> dict[str, Tensor]:
    copies = {}
    for name, tensor in tensors.items():
        copy = before.get(name)
        if copy is None or copy.shape != tensor.shape or copy.dtype != tensor.dtype:
            # Memory that stays where it is (pinned) is what a GPU writes to by itself, at the full speed of the bus.
            copy = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda)
        copies[name] = copy.copy_(tensor, non_blocking=tensor.is_cuda)
    return copies
