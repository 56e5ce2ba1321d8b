"""A process group of one process, for engines of packages that ask for one."""

from __future__ import annotations

from torch import distributed as dist
from torch.distributed import HashStore  # type: ignore[attr-defined]


def open_group() -> None:
    """Open a group of this process alone, which opens no socket, where there is none; who opened none closes it."""
    if not dist.is_initialized():
        dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
