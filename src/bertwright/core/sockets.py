"""The sockets and memory (NUMA) nodes of this machine, with the processors of each that this process may use.

Read from Linux sysfs (Documentation/ABI/stable/sysfs-devices-system-cpu and -node). A processor is a hardware thread;
with SMT, several share a core. Processors that a container's cpuset or taskset excludes are left out. Independent of
torch.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bertwright.core.errors import RecipeError

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
