"""What this process may use of its machine: memory, processors and what they can do, sockets, memory nodes (NUMA).

Slurm, systemd, Docker and Kubernetes set limits on the group of this process or on one of its ancestors; inside a
container, the container's own group is the root (Linux only). Sockets and nodes are read from Linux sysfs
(Documentation/ABI/stable/sysfs-devices-system-cpu and -node). A processor is a hardware thread; with SMT, several share
a core. Processors that a container's cpuset or taskset excludes are left out. Independent of torch.
"""

from __future__ import annotations

import math
import os
import resource
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from bertwright.core.errors import RecipeError

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


Kind = Literal["socket", "node"]
SYSTEM = Path("/sys/devices/system")


@dataclass(frozen=True)
class Processors:
    """Processors that share a socket, or a memory node."""

    name: str
    """Such as "socket 0"; the number is the machine's, and numbers may have gaps."""
    processors: tuple[int, ...]
    """The hardware threads that may be used, in ascending order."""
    cores: int
    """The number of cores that they belong to."""


def processors_of(kind: Kind) -> tuple[Processors, ...]:
    """The sockets or memory nodes with at least one processor that this process may use, ordered by number.

    `RecipeError` if the system does not report them.
    """
    if not hasattr(os, "sched_getaffinity") or not (SYSTEM / "cpu").is_dir():
        raise RecipeError(
            f"the {kind}s of this machine are unknown: only Linux reports them, in {SYSTEM}. Start the ranks with "
            "torchrun instead."
        )
    allowed = os.sched_getaffinity(0)
    numbers = _nodes(allowed) if kind == "node" else {cpu: _topology(cpu, "physical_package_id") for cpu in allowed}
    groups: dict[int, list[int]] = {}
    for cpu in sorted(allowed):
        groups.setdefault(numbers.get(cpu, 0), []).append(cpu)
    return tuple(_group(f"{kind} {number}", cpus) for number, cpus in sorted(groups.items()))


def processors_in(text: str) -> set[int]:
    """The numbers in a Linux list such as "0-3,8-11", ends included; empty for an empty list."""
    numbers: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def _group(name: str, cpus: list[int]) -> Processors:
    return Processors(name, tuple(cpus), len({_core(cpu) for cpu in cpus}))


def _core(cpu: int) -> int:
    """A number that identifies the core of a processor: that of the core's first thread."""
    # Not core_id, which restarts in each socket, and on some machines in each part of a socket.
    for name in ("core_cpus_list", "thread_siblings_list"):  # the newer name first
        path = SYSTEM / "cpu" / f"cpu{cpu}" / "topology" / name
        if path.is_file():
            return min(processors_in(path.read_text(encoding="ascii")), default=cpu)
    return cpu


def _topology(cpu: int, name: str) -> int:
    """A number from a processor's topology; 0 if the system does not report it, as in some virtual machines."""
    path = SYSTEM / "cpu" / f"cpu{cpu}" / "topology" / name
    return max(int(path.read_text(encoding="ascii")), 0) if path.is_file() else 0


def _nodes(allowed: Collection[int]) -> dict[int, int]:
    """The memory node of each processor; empty if the kernel reports no nodes, so all memory is one node."""
    return {
        cpu: int(folder.name.removeprefix("node"))
        for folder in (SYSTEM / "node").glob("node[0-9]*")
        for cpu in processors_in((folder / "cpulist").read_text(encoding="ascii"))
        if cpu in allowed
    }
