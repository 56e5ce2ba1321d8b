"""How much memory this process may use. Independent of torch."""

from __future__ import annotations

import os
import resource

from bertwright.core.cgroup import memory_bounds


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
