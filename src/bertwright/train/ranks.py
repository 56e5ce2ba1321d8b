"""The ranks of one training job, and what they add up: gradients, losses, counts, held-out scores.

Started by torchrun (or anything that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT) a job has several
ranks; started plainly it has one, and no process group and no socket exist. A rank that is lost ends all of them with a
`RankError`, at the next sum at the latest, or from the thread of `train.watchdog`.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch import distributed as dist
from torch.distributed import Store  # type: ignore[attr-defined]

from bertwright.core import rng
from bertwright.core.distributed import rank_and_world
from bertwright.core.errors import ArtifactError, Interrupted, RankError

if TYPE_CHECKING:
    from bertwright.train.watchdog import Watchdog

NEVER = timedelta(days=7)
"""gloo's own time-out: ranks wait in it while the first one saves, however long; the watchdog knows who is lost."""
LOOK = timedelta(seconds=1)
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
        # One message for all tensors: each all-reduce costs a round trip of its own.
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        self._finish(dist.all_reduce(flat, async_op=True))
        for tensor, part in zip(tensors, torch.split(flat, [t.numel() for t in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def all_reduce_async(self, counts: Sequence[int]) -> PendingSum:
        """Start adding up `counts` over all ranks; the result is asked for later."""
        # Whole numbers, so that sums are exact and the order of ranks does not matter.
        values = torch.tensor(counts, dtype=torch.int64)
        work = dist.all_reduce(values, async_op=True) if self.world > 1 else None
        return PendingSum(self, values, work)

    def any(self, flag: bool) -> bool:
        """Whether the flag is up on any rank, so that all stop at the same step."""
        return bool(self.all_reduce_async([flag]).result()[0])

    def least(self, value: int) -> int:
        """The smallest of the numbers that the ranks pass, none below 0."""
        own = [value if rank == self.rank else 0 for rank in range(self.world)]
        return min(self.all_reduce_async(own).result())

    def assert_equal(self, value: str, what: str) -> None:
        """Raise `ArtifactError` on every rank unless all ranks pass the same value."""
        if self.world == 1:
            return
        # The maximum of x and of -x are equal and opposite only where all x are the same: one reduction compares all.
        number = rng.key(value) >> 1
        extremes = torch.tensor([number, -number])
        self._finish(dist.all_reduce(extremes, op=dist.ReduceOp.MAX, async_op=True))
        if int(extremes[0]) != -int(extremes[1]):
            raise ArtifactError(
                f"the {self.world} ranks do not see the same thing: {what}. "
                "All ranks need the same recipe and the same shared folder."
            )

    def barrier(self) -> None:
        """Wait until every rank is here."""
        if self.world > 1:
            self._finish(dist.barrier(async_op=True))

    def saving(self) -> AbstractContextManager[None]:
        """What is done inside is finished, also when another rank is lost meanwhile."""
        return self.watchdog.saving() if self.watchdog else nullcontext()

    def connect(self, store: Store) -> None:
        """Open the process group, by way of a store that only the ranks of this start share."""
        try:
            dist.init_process_group("gloo", store=store, rank=self.rank, world_size=self.world, timeout=NEVER)
        except RuntimeError as error:
            raise self._broken(error) from error

    def leave(self, why: str = "") -> None:
        """Say farewell to the others, and close the process group; or say `why` this rank fails, and leave it open."""
        if self.watchdog:
            self.watchdog.close(why)
            # Destroying the group waits for the others, who may be waiting for this rank.
            if not why:
                dist.destroy_process_group()

    def _finish(self, work: dist.Work | None) -> None:
        """Wait for the other ranks; `RankError` when one of them is lost."""
        assert work is not None and self.watchdog is not None
        completed = False
        while True:
            try:
                work.wait(LOOK)
                return
            except RuntimeError as error:
                # A time-out and a broken connection raise the same; only of the latter the work is completed.
                if completed:
                    raise self._broken(error) from error
                if not (completed := work.is_completed()):  # the second of waiting is over
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
class PendingSum:
    """A sum over ranks that is under way."""

    ranks: Ranks
    values: Tensor
    """[N] int64, the sums once `work` is done."""
    work: dist.Work | None

    def result(self) -> list[int]:
        """The sums, waiting for them if need be."""
        if self.work is not None:
            self.ranks._finish(self.work)
        return [int(value) for value in self.values]


@contextmanager
def process_group(timeout: float) -> Iterator[Ranks]:
    """The ranks of this job, with the process group open for the length of the block.

    A rank that gives no sign of life for `timeout` seconds is lost: a `RankError`. This process can then do nothing
    more but end, with that error's exit code: gloo waits for the lost rank, and would not let it.
    """
    rank, world = rank_and_world()
    if world == 1:
        yield Ranks()
        return
    # A single process opens no socket and loads nothing that could.
    from bertwright.train.meeting import meet, our_name
    from bertwright.train.watchdog import Watchdog, failure

    meeting = meet(rank, world, timeout)
    ranks = Ranks(rank, world, Watchdog(meeting.peers, timeout))
    try:
        ranks.connect(meeting.store)
        yield ranks
    except BaseException as error:
        if isinstance(error, Interrupted):
            ranks.leave()
        else:
            ranks.leave(failure(our_name(rank, world), error))
            # At exit gloo's threads would wait for the lost rank, for up to NEVER.
            atexit.register(_end, getattr(error, "exit_code", 1))
        raise
    ranks.leave()


def _end(code: int) -> None:
    """End now: gloo's threads would wait for the others."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
