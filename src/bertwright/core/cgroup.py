"""What a job or a container may use of its machine: the bounds of this process's control groups. Linux alone has them.

Slurm, systemd, Docker and Kubernetes set them on a group that this process is in, or on one above it; a container sees
its own as the root.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_ROOT, _OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def memory_bounds() -> list[int]:
    """Bytes that each group around this process may use, of those that are bounded."""
    found = [*_said("memory", "memory.max"), *_said("memory", "memory.limit_in_bytes")]
    return [int(text) for text in found if text.isdigit()]


def processor_bounds() -> list[int]:
    """Processors, rounded up, whose time each group around this process may use, of those that are bounded."""
    newer = [text.split() for text in _said("cpu", "cpu.max")]
    older = zip(_said("cpu", "cpu.cfs_quota_us"), _said("cpu", "cpu.cfs_period_us"), strict=False)
    shares = [(quota, period) for quota, period in (*newer, *older) if quota.isdigit() and period.isdigit()]
    return [max(1, math.ceil(int(quota) / int(period))) for quota, period in shares if int(period)]


def _said(controller: str, name: str) -> Iterator[str]:
    """What a file says in each group around this process that has it."""
    for folder in _groups(controller):
        with suppress(OSError):
            yield (folder / name).read_text(encoding="ascii").strip()


def _groups(controller: str) -> Iterator[Path]:
    """The folders of the groups around this process, from the root on."""
    lines = list[str]()
    with suppress(OSError):
        lines = _OWN.read_text(encoding="utf-8").splitlines()
    for line in lines:
        controllers, _, place = line.partition(":")[2].partition(":")
        if not controllers or controller in controllers.split(","):
            # Of version 1 each controller has a tree of its own.
            folder = _ROOT / controller if controllers else _ROOT
            yield folder
            for part in Path(place).parts[1:]:
                folder /= part
                yield folder
