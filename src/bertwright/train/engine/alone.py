"""A process group of one process, for engines whose packages require a group."""

from __future__ import annotations

from torch import distributed as dist
from torch.distributed import HashStore  # type: ignore[attr-defined]


def open_group(gpu: bool) -> None:
    """Open a group of this process alone, without a socket, unless a group is open; the caller that opened none closes
    it.

    `gpu`: also for GPU tensors.
    """
    if not dist.is_initialized():
        dist.init_process_group("cpu:gloo,cuda:nccl" if gpu else "gloo", store=HashStore(), rank=0, world_size=1)
