"""Resource limits of a job or container: those of the control groups around this process. Linux only.

Slurm, systemd, Docker and Kubernetes set limits on the group of this process or on one of its ancestors; inside a
container, the container's own group is the root.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_ROOT, _OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def memory_bounds() -> list[int]:
    """The memory limit in bytes of each group around this process that has one."""
    found = [*_said("memory", "memory.max"), *_said("memory", "memory.limit_in_bytes")]
    return [int(text) for text in found if text.isdigit()]


def processor_bounds() -> list[int]:
    """The limit on processor time of each group around this process that has one, in processors, rounded up."""
    newer = [text.split() for text in _said("cpu", "cpu.max")]
    older = zip(_said("cpu", "cpu.cfs_quota_us"), _said("cpu", "cpu.cfs_period_us"), strict=False)
    shares = [(quota, period) for quota, period in (*newer, *older) if quota.isdigit() and period.isdigit()]
    return [max(1, math.ceil(int(quota) / int(period))) for quota, period in shares if int(period)]


def _said(controller: str, name: str) -> Iterator[str]:
    """The content of a file in each group around this process that has it."""
    for folder in _groups(controller):
        with suppress(OSError):
            yield (folder / name).read_text(encoding="ascii").strip()


def _groups(controller: str) -> Iterator[Path]:
    """The folders of the groups around this process, starting at the root."""
    lines = list[str]()
    with suppress(OSError):
        lines = _OWN.read_text(encoding="utf-8").splitlines()
    for line in lines:
        controllers, _, place = line.partition(":")[2].partition(":")
        if not controllers or controller in controllers.split(","):
            # In version 1 each controller has its own tree.
            folder = _ROOT / controller if controllers else _ROOT
            yield folder
            for part in Path(place).parts[1:]:
                folder /= part
                yield folder
