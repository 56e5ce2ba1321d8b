"""How much memory this process may use. Knows no torch."""

from __future__ import annotations

import os
import resource
from pathlib import Path

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where a container says how much memory it may use."""


def memory_size() -> int:
    """Bytes of memory that this process may use: the machine's, or less where a container or a limit says so."""
    # In a container the machine's memory is not what the process may use: beyond its limit it is killed.
    limits = [path.read_text().strip() for path in map(Path, _LIMITS) if path.is_file()]
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *(int(n) for n in limits if n.isdigit())]
    if (limit := resource.getrlimit(resource.RLIMIT_AS)[0]) != resource.RLIM_INFINITY:
        sizes.append(limit)
    return min(sizes)
