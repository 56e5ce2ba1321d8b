"""The memory and processors that this process may use, and the capabilities of the processors. Independent of torch.

Slurm, systemd, Docker and Kubernetes set limits on the group of this process or on one of its ancestors; inside a
container, the container's own group is the root (Linux only).
"""

from __future__ import annotations

import math
import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

_ROOT, _OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def memory_bounds() -> list[int]:
    """The memory limit in bytes of each group around this process that has one."""
    found = [*_read_groups("memory", "memory.max"), *_read_groups("memory", "memory.limit_in_bytes")]
    return [int(text) for text in found if text.isdigit()]


def processor_bounds() -> list[int]:
    """The limit on processor time of each group around this process that has one, in processors, rounded up."""
    newer = [text.split() for text in _read_groups("cpu", "cpu.max")]
    older = zip(_read_groups("cpu", "cpu.cfs_quota_us"), _read_groups("cpu", "cpu.cfs_period_us"), strict=False)
    shares = [(quota, period) for quota, period in (*newer, *older) if quota.isdigit() and period.isdigit()]
    return [max(1, math.ceil(int(quota) / int(period))) for quota, period in shares if int(period)]


def _read_groups(controller: str, name: str) -> Iterator[str]:
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


def memory_size() -> int:
    """Bytes of memory that this process may use: the machine's, or less if a job, a container or a ulimit says so."""
    # A process that exceeds the limit of its job or container is killed, however much the machine has.
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *memory_bounds()]
    if limit := address_space():
        sizes.append(limit)
    return min(sizes)


def address_space() -> int:
    """Bytes of address space that this process may use (`ulimit -v`); 0 without a limit."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return 0 if limit == resource.RLIM_INFINITY else limit


@cache
def processor_flags() -> frozenset[str]:
    """The words of /proc/cpuinfo, which include instruction sets (such as `avx2`); empty if the file is absent."""
    try:
        return frozenset(Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").split())
    except OSError:
        return frozenset()


def default_workers() -> int:
    """Number of processors this process may use: its affinity, or less if a job or container limits its time."""
    bound_to = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min([bound_to, *processor_bounds()])
