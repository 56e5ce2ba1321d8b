"""The ranks of one training job, and what they add up: gradients, losses, counts, held-out scores.

Started by torchrun (or anything that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT) a job has several
ranks; started plainly it has one, and no process group and no socket exist. A rank that is lost ends all of them with a
`RankError`, at the next sum at the latest, or from the thread of `train.watchdog`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch import distributed as dist
from torch.distributed import Store  # type: ignore[attr-defined]

from bertwright.core.errors import RankError

if TYPE_CHECKING:
    from bertwright.train.watchdog import Watchdog

NEVER = timedelta(days=7)
"""gloo's own time-out: ranks wait in it while the first one saves, however long; the watchdog knows who is lost."""
LOOK = timedelta(seconds=0.5)
"""How often a rank that waits for the others asks whether one of them is lost."""


@dataclass(frozen=True)
class Ranks:
    """This process among its peers."""

    rank: int = 0
    world: int = 1
    watchdog: Watchdog | None = None
    """Of a job of several ranks."""

    @property
    def first(self) -> bool:
        """Only the first rank writes files and talks."""
        return self.rank == 0

    def all_reduce(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor, of any shape, by its sum over all ranks, in one all-reduce."""
        if self.world == 1 or not tensors:
            return
        flat = _flat(tensors)
        _spread(self.start_sum(flat).result(), tensors)

    def start_sum(self, values: Tensor) -> Sum:
        """Start replacing a tensor of any shape by its sum over all ranks; the result is asked for later."""
        if self.world == 1:
            return Sum(self, values, None)
        self._count()
        return Sum(self, values, dist.all_reduce(values, async_op=True))

    def all_reduce_async(self, counts: Sequence[int]) -> PendingSum:
        """Start adding up `counts` over all ranks; the result is asked for later."""
        # Whole numbers, so that sums are exact and the order of ranks does not matter.
        return PendingSum(self.start_sum(torch.tensor(counts, dtype=torch.int64)))

    @torch.no_grad()
    def send(self, tensors: Sequence[Tensor], owner: int) -> None:
        """Replace each tensor, of any shape, on all ranks by that of rank `owner`, in one message."""
        if self.world == 1 or not tensors:
            return
        flat = _flat(tensors)
        self._count()
        self._finish(dist.broadcast(flat, src=owner, async_op=True), flat)
        if self.rank != owner:
            _spread(flat, tensors)

    def any(self, flag: bool) -> bool:
        """Whether the flag is up on any rank, so that all stop at the same step."""
        return self.any_of(flag)[0]

    def any_of(self, *flags: bool) -> list[bool]:
        """For each flag whether it is up on any rank, in one sum."""
        return [count > 0 for count in self.all_reduce_async(flags).result()]

    def each(self, value: int) -> list[int]:
        """The number that each rank passes, in their order."""
        return self.all_reduce_async([value if rank == self.rank else 0 for rank in range(self.world)]).result()

    def barrier(self) -> None:
        """Wait until every rank is here."""
        # Not by torch's own, which on GPUs is another transport's, and does not tell of a rank that is lost.
        self.any(False)

    def saving(self) -> AbstractContextManager[None]:
        """What is done inside is finished, also when another rank is lost meanwhile."""
        return self.watchdog.saving() if self.watchdog else nullcontext()

    def busy(self) -> AbstractContextManager[None]:
        """The other ranks wait for what is done inside, however long it takes, and do not count it as hanging."""
        return self.watchdog.busy() if self.watchdog else nullcontext()

    @contextmanager
    def finishing(self) -> Iterator[None]:
        """What is done inside is finished, also when another rank is lost, and the others wait for it."""
        with self.saving(), self.busy():
            yield

    def connect(self, store: Store, gpus: bool) -> None:
        """Open the process group, by way of a store that only the ranks of this start share."""
        transport = "cpu:gloo,cuda:nccl" if gpus else "gloo"
        try:
            dist.init_process_group(transport, store=store, rank=self.rank, world_size=self.world, timeout=NEVER)
        except RuntimeError as error:
            raise self._broken(error) from error

    def leave(self, why: str = "") -> None:
        """Say farewell to the others, and close the process group; or say `why` this rank fails, and leave it open."""
        if self.watchdog:
            self.watchdog.close(why)
            # Destroying the group waits for the others, who may be waiting for this rank.
            if not why:
                dist.destroy_process_group()

    def _count(self) -> None:
        """Have the watchdog tell the others that this rank has come to one more exchange between all of them."""
        assert self.watchdog is not None
        self.watchdog.sums += 1

    def _finish(self, work: dist.Work | None, values: Tensor) -> None:
        """Wait for the other ranks; `RankError` when one of them is lost."""
        assert work is not None and self.watchdog is not None
        if values.is_cuda:
            work.wait()  # the device waits and not the host, whom the watchdog's thread ends where a rank is lost
            return
        completed = False
        while True:
            try:
                work.wait(LOOK)
                return
            except RuntimeError as error:
                # A time-out and a broken connection raise the same; only of the latter the work is completed.
                if completed:
                    raise self._broken(error) from error
                if not (completed := work.is_completed()):  # the waiting is over
                    self.watchdog.check()

    def _broken(self, error: Exception) -> RankError:
        """What a fault of the transport means."""
        from bertwright.train.watchdog import GRACE

        assert self.watchdog is not None
        return self.watchdog.lost(GRACE) or RankError(
            f"rank {self.rank} of {self.world} lost its connection to another rank: {error}. Run the same command "
            "again: training goes on from its newest checkpoint."
        )


@dataclass(frozen=True)
class Sum:
    """A sum over ranks that is under way."""

    ranks: Ranks
    values: Tensor
    """A tensor of any shape; the sums once `work` is done."""
    work: dist.Work | None

    def result(self) -> Tensor:
        """The sums, of any shape, waiting for them if need be."""
        if self.work is not None:
            self.ranks._finish(self.work, self.values)
        return self.values


@dataclass(frozen=True)
class PendingSum:
    """A sum of whole numbers over ranks that is under way."""

    sum: Sum

    def result(self) -> list[int]:
        """The sums, waiting for them if need be."""
        return [int(value) for value in self.sum.result()]


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    # One message for all tensors: each costs a round trip of its own.
    return torch.cat([tensor.flatten() for tensor in tensors])


def _spread(flat: Tensor, tensors: Sequence[Tensor]) -> None:
    for tensor, part in zip(tensors, torch.split(flat, [t.numel() for t in tensors]), strict=True):
        tensor.copy_(part.view_as(tensor))
