"""The ranks of one training job, and what they sum: gradients, losses, counts, held-out scores.

Started by torchrun (or any launcher that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT), a job has several ranks.
Started directly it has one, and opens no process group and no socket. If a rank is lost, all others end with a
`RankError`, at the next all-reduce at the latest, or from the thread of `train.watchdog`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch import distributed as dist
from torch.distributed import Store  # type: ignore[attr-defined]

from bertwright.core.errors import RankError

if TYPE_CHECKING:
    from bertwright.train.ranks.watchdog import Watchdog

NEVER = timedelta(days=7)
"""gloo's own timeout. Ranks wait in gloo while rank 0 saves, however long that takes; the watchdog detects lost
ranks."""
LOOK = timedelta(seconds=0.5)
"""How often a waiting rank checks whether another rank is lost."""
_FEW = 4096
"""Maximum size of a tensor that is kept after its all-reduce."""


@dataclass(frozen=True)
class Ranks:
    """This process and its peers."""

    rank: int = 0
    world: int = 1
    watchdog: Watchdog | None = None
    """The watchdog of a job with several ranks."""
    recent: deque[Tensor] = field(default_factory=lambda: deque(maxlen=4), compare=False, repr=False)
    """The small tensors last summed, of any shape. If a thread of gloo freed one, it would wait for Python's lock,
    which torch 2.3 holds while it waits for that thread in `leave`."""

    @property
    def first(self) -> bool:
        """Whether this is rank 0, the only rank that writes files and logs."""
        return self.rank == 0

    def all_reduce(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor, of any shape, by its sum over all ranks, in one all-reduce."""
        if self.world == 1 or not tensors:
            return
        flat = _flat(tensors)
        _spread(self.start_sum(flat).result(), tensors)

    def start_sum(self, values: Tensor) -> Sum:
        """Start an in-place sum of a tensor of any shape over all ranks; get the result later from the returned
        `Sum`."""
        if self.world == 1:
            return Sum(self, values, None)
        self.count()
        if values.numel() <= _FEW:
            self.recent.append(values)
        return Sum(self, values, dist.all_reduce(values, async_op=True))

    def all_reduce_async(self, counts: Sequence[int]) -> PendingSum:
        """Start summing `counts` over all ranks; get the result later from the returned `PendingSum`."""
        # Integers, so that sums are exact and independent of the order of ranks.
        return PendingSum(self.start_sum(torch.tensor(counts, dtype=torch.int64)))

    @torch.no_grad()
    def send(self, tensors: Sequence[Tensor], owner: int) -> None:
        """Replace each tensor, of any shape, on all ranks by that of rank `owner`, in one broadcast."""
        if self.world == 1 or not tensors:
            return
        flat = _flat(tensors)
        self.count()
        self._finish(dist.broadcast(flat, src=owner, async_op=True), flat)
        if self.rank != owner:
            _spread(flat, tensors)

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any rank, so that all ranks act on it at the same step."""
        return self.any_of(flag)[0]

    def any_of(self, *flags: bool) -> list[bool]:
        """Return for each flag whether it is set on any rank, in one all-reduce."""
        return [count > 0 for count in self.all_reduce_async(flags).result()]

    def each(self, value: int) -> list[int]:
        """Return the value of each rank, in rank order."""
        return self.all_reduce_async([value if rank == self.rank else 0 for rank in range(self.world)]).result()

    def barrier(self) -> None:
        """Wait until every rank is here."""
        # Not torch's own barrier: on GPUs it uses another transport, and does not report a lost rank.
        self.any(False)

    def count(self) -> None:
        """Note that a collective operation begins, which the watchdog reports to the others; the methods above do so
        themselves, and engines do for what their packages send."""
        if self.watchdog:
            self.watchdog.sums += 1

    def saving(self) -> AbstractContextManager[None]:
        """Return a context whose block is completed even if another rank is lost meanwhile."""
        return self.watchdog.saving() if self.watchdog else nullcontext()

    def busy(self) -> AbstractContextManager[None]:
        """Return a context whose block the other ranks wait for, however long it takes, without counting it as
        hanging."""
        return self.watchdog.doing("busy") if self.watchdog else nullcontext()

    def on_device(self, device: torch.device) -> AbstractContextManager[None]:
        """Return a context in whose block the host only gives work to `device`, and waits for it."""
        gpu = device.type == "cuda"
        return self.watchdog.doing("device") if self.watchdog and gpu else nullcontext()

    def count_pass(self) -> None:
        """Count one more forward pass, which the watchdog reports to the others."""
        if self.watchdog:
            self.watchdog.passes += 1

    @contextmanager
    def finishing(self) -> Iterator[None]:
        """Complete the block even if another rank is lost; the other ranks wait for it."""
        with self.saving(), self.busy():
            yield

    def connect(self, store: Store, gpus: bool) -> None:
        """Open the process group through a store that only the ranks of this start share."""
        transport = "cpu:gloo,cuda:nccl" if gpus else "gloo"
        try:
            dist.init_process_group(transport, store=store, rank=self.rank, world_size=self.world, timeout=NEVER)
        except RuntimeError as error:
            raise self._broken(error) from error
        # NCCL connects through the store only at its first all-reduce, which one rank may reach long after another,
        # for example if a compiler takes longer there. The store would wait no longer than the ranks may take to meet.
        store.set_timeout(NEVER)

    def leave(self, why: str = "") -> None:
        """Announce the exit to the others and close the process group; on a failure (`why`), announce that and leave it
        open."""
        if self.watchdog:
            self.watchdog.close(why)
            # Destroying the group waits for the others, which may be waiting for this rank.
            if not why:
                dist.destroy_process_group()

    def _finish(self, work: dist.Work | None, values: Tensor) -> None:
        """Wait for the other ranks; raise `RankError` if one of them is lost."""
        assert work is not None and self.watchdog is not None
        if values.is_cuda:
            work.wait()  # the device waits, not the host, which the watchdog thread ends if a rank is lost
            return
        completed = False
        while True:
            try:
                work.wait(LOOK)
                return
            except RuntimeError as error:
                # A timeout and a broken connection raise the same error; only after the latter is the work completed.
                if completed:
                    raise self._broken(error) from error
                if not (completed := work.is_completed()):  # only the wait timed out
                    self.watchdog.check()

    def _broken(self, error: Exception) -> RankError:
        """Return the error that explains a transport failure."""
        from bertwright.train.ranks.watchdog import GRACE

        assert self.watchdog is not None
        return self.watchdog.lost(GRACE) or RankError(
            f"rank {self.rank} of {self.world} lost its connection to another rank: {error}. Run the same command "
            "again: training goes on from its newest checkpoint."
        )


@dataclass(frozen=True)
class Sum:
    """An all-reduce in progress."""

    ranks: Ranks
    values: Tensor
    """A tensor of any shape; holds the sums once `work` is done."""
    work: dist.Work | None

    def result(self) -> Tensor:
        """Return the sums, of any shape, waiting for them if necessary."""
        if self.work is not None:
            self.ranks._finish(self.work, self.values)
        return self.values


@dataclass(frozen=True)
class PendingSum:
    """An all-reduce of integers in progress."""

    sum: Sum

    def result(self) -> list[int]:
        """Return the sums, waiting for them if necessary."""
        return [int(value) for value in self.sum.result()]


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    # One message for all tensors: each message costs a round trip.
    return torch.cat([tensor.flatten() for tensor in tensors])


def _spread(flat: Tensor, tensors: Sequence[Tensor]) -> None:
    for tensor, part in zip(tensors, torch.split(flat, [t.numel() for t in tensors]), strict=True):
        tensor.copy_(part.view_as(tensor))
