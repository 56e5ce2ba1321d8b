"""The sockets and memory nodes of this machine, with the processors of each that this process may use.

Read from the files of Linux (Documentation/ABI/stable/sysfs-devices-system-cpu and -node): a processor is a hardware
thread, several of which share a core where the machine has SMT. What a container's cpuset or taskset leaves out is not
there. Knows no torch.
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
    """Such as "socket 0"; numbers are those of the machine, and need not follow one another."""
    processors: tuple[int, ...]
    """The hardware threads that may be used, rising."""
    cores: int
    """How many cores they are of."""


def processors_of(kind: Kind) -> tuple[Processors, ...]:
    """The sockets or memory nodes of which this process may use a processor, in the order of their numbers.

    `RecipeError` where the system does not tell them.
    """
    if not hasattr(os, "sched_getaffinity") or not (SYSTEM / "cpu").is_dir():
        raise RecipeError(
            f"the {kind}s of this machine are not known: only Linux tells them, in {SYSTEM}. Start the ranks with "
            "torchrun instead."
        )
    allowed = os.sched_getaffinity(0)
    numbers = _nodes(allowed) if kind == "node" else {cpu: _topology(cpu, "physical_package_id") for cpu in allowed}
    groups: dict[int, list[int]] = {}
    for cpu in sorted(allowed):
        groups.setdefault(numbers.get(cpu, 0), []).append(cpu)
    return tuple(_group(f"{kind} {number}", cpus) for number, cpus in sorted(groups.items()))


def processors_in(text: str) -> set[int]:
    """The numbers in a list as Linux writes it, such as "0-3,8-11": ends included; empty for no number."""
    numbers: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def _group(name: str, cpus: list[int]) -> Processors:
    return Processors(name, tuple(cpus), len({_core(cpu) for cpu in cpus}))


def _core(cpu: int) -> int:
    """A number of the core that a processor is of: that of its first thread."""
    # Not core_id, which is counted anew in each socket, and in some machines in each part of one.
    for name in ("core_cpus_list", "thread_siblings_list"):  # the newer name first
        path = SYSTEM / "cpu" / f"cpu{cpu}" / "topology" / name
        if path.is_file():
            return min(processors_in(path.read_text(encoding="ascii")), default=cpu)
    return cpu


def _topology(cpu: int, name: str) -> int:
    """A number of a processor's topology; 0 where there is none, as in some virtual machines."""
    path = SYSTEM / "cpu" / f"cpu{cpu}" / "topology" / name
    return max(int(path.read_text(encoding="ascii")), 0) if path.is_file() else 0


def _nodes(allowed: Collection[int]) -> dict[int, int]:
    """The memory node of each processor; empty where the kernel knows no nodes, and all memory is one."""
    return {
        cpu: int(folder.name.removeprefix("node"))
        for folder in (SYSTEM / "node").glob("node[0-9]*")
        for cpu in processors_in((folder / "cpulist").read_text(encoding="ascii"))
        if cpu in allowed
    }
