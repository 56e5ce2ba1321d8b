"""The ranks of one training job, and the two sums they share: gradients and counts.

Started by torchrun (or anything that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT) a job has several
ranks; started plainly it has one, and no process group and no socket exist.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor
from torch import distributed as dist

from bertwright.core import rng
from bertwright.core.errors import ArtifactError


@dataclass(frozen=True)
class Ranks:
    """This process among its peers."""

    rank: int = 0
    world: int = 1

    @property
    def first(self) -> bool:
        """Only the first rank writes files and talks."""
        return self.rank == 0

    def sum_in_place(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all ranks, in one all-reduce."""
        if self.world == 1 or not tensors:
            return
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        dist.all_reduce(flat)
        for tensor, part in zip(tensors, torch.split(flat, [t.numel() for t in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def begin_sum(self, counts: Sequence[int]) -> PendingSum:
        """Start adding up `counts` over all ranks; the result is asked for later."""
        values = torch.tensor(counts, dtype=torch.int64)
        work = dist.all_reduce(values, async_op=True) if self.world > 1 else None
        return PendingSum(values, work)

    def any(self, flag: bool) -> bool:
        """Whether the flag is up on any rank, so that all stop at the same step."""
        return bool(self.begin_sum([flag]).result()[0])

    def agree(self, value: str, what: str) -> None:
        """Raise `ArtifactError` on every rank unless all ranks pass the same value."""
        if self.world == 1:
            return
        number = rng.key(value) >> 1
        extremes = torch.tensor([number, -number])
        dist.all_reduce(extremes, op=dist.ReduceOp.MAX)
        if int(extremes[0]) != -int(extremes[1]):
            raise ArtifactError(
                f"the {self.world} ranks do not see the same thing: {what}. "
                "All ranks need the same recipe and the same shared folder."
            )

    def barrier(self) -> None:
        """Wait until every rank is here."""
        if self.world > 1:
            dist.barrier()


@dataclass(frozen=True)
class PendingSum:
    """A sum over ranks that is under way."""

    values: Tensor
    work: dist.Work | None

    def result(self) -> list[int]:
        """The sums, waiting for them if need be."""
        if self.work is not None:
            self.work.wait()
        return [int(value) for value in self.values]


@contextmanager
def join() -> Iterator[Ranks]:
    """The ranks of this job, with the process group open for the length of the block."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield Ranks()
        return
    # The others wait while the first rank scores and saves; a dead one is noticed by its closed connection.
    dist.init_process_group("gloo", timeout=timedelta(days=7))
    try:
        yield Ranks(dist.get_rank(), world)
    finally:
        dist.destroy_process_group()
