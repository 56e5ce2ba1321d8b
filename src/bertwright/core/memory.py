"""How much memory this process may use. Knows no torch."""

from __future__ import annotations

import os
import resource

from bertwright.core.cgroup import memory_bounds


def memory_size() -> int:
    """Bytes of memory that this process may use: the machine's, or less where a job, a container or a limit says so."""
    # Beyond the bound of its job or container a process is killed, whatever the machine has.
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *memory_bounds()]
    if (limit := resource.getrlimit(resource.RLIMIT_AS)[0]) != resource.RLIM_INFINITY:
        sizes.append(limit)
    return min(sizes)
