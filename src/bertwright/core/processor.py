"""The processors of this machine: how many this process may use, and their capabilities. Independent of torch."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from bertwright.core.cgroup import processor_bounds


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
