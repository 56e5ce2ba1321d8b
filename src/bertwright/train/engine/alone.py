"""A process group of one process, for engines of packages that ask for one."""

from __future__ import annotations

from torch import distributed as dist
from torch.distributed import HashStore  # type: ignore[attr-defined]


def open_group(gpu: bool) -> None:
    """Open a group of this process alone, which opens no socket, where there is none; who opened none closes it.

    `gpu`: for tensors on one, too.
    """
    if not dist.is_initialized():
        dist.init_process_group("cpu:gloo,cuda:nccl" if gpu else "gloo", store=HashStore(), rank=0, world_size=1)
