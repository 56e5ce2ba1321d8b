"""The processors of this machine, how many there are and what they can do. Knows no torch."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from bertwright.core.cgroup import processor_bounds


@cache
def processor_flags() -> frozenset[str]:
    """The words of /proc/cpuinfo, names of instruction sets (such as `avx2`) among them; empty where it is absent."""
    try:
        return frozenset(Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").split())
    except OSError:
        return frozenset()


def default_workers() -> int:
    """The processors this process may use: those it is bound to, or fewer where a job or a container bounds its
    time."""
    bound_to = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min([bound_to, *processor_bounds()])
