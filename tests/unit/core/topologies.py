"""Real machines, restated from what others have published of them: the output of lscpu or hwloc, or a copy of sysfs.

As in Linux, a processor is a hardware thread, and a node one of memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bertwright.core.resources import processors_in


@dataclass(frozen=True)
class Topology:
    """A machine as Linux describes it."""

    sockets: Mapping[int, str]
    """The processors of each, as a list of Linux."""
    socket_cores: Sequence[int]
    """The number of cores of each."""
    nodes: Mapping[int, str] = field(default_factory=dict)
    """As `sockets`; empty where the kernel reports none."""
    node_cores: Sequence[int] = ()
    """As `socket_cores`, for those with processors."""
    second_thread: int = 0
    """How much higher the number of a core's second thread is than that of its first; 0: there is none."""
    sibling_file: str = "core_cpus_list"
    """The file with the threads of a core; older kernels name it otherwise."""
    offline: str = ""
    """Processors that are turned off: their folders have no topology."""

    @property
    def cores(self) -> list[tuple[int, tuple[int, ...]]]:
        """The socket and the processors of each core."""
        return [core for socket, text in self.sockets.items() for core in self._cores(socket, processors_in(text))]

    def _cores(self, socket: int, processors: set[int]) -> list[tuple[int, tuple[int, ...]]]:
        second = {cpu for cpu in processors if self.second_thread and cpu - self.second_thread in processors}
        threads = {cpu: {cpu, cpu + self.second_thread} & processors for cpu in processors - second}
        return [(socket, tuple(sorted(threads[cpu]))) for cpu in sorted(threads)]


RECORDED = {
    # lscpu: linux-kernel@vger.kernel.org, 2024-02-07, "NMI Reported with console_blast.sh". Eight more nodes are
    # memory on the packages, without processors.
    "two Xeon CPU Max 9480, SNC4": Topology(
        {0: "0-55,112-167", 1: "56-111,168-223"},
        [56, 56],
        {
            0: "0-13,112-125",
            1: "14-27,126-139",
            2: "28-41,140-153",
            3: "42-55,154-167",
            4: "56-69,168-181",
            5: "70-83,182-195",
            6: "84-97,196-209",
            7: "98-111,210-223",
            8: "",
            9: "",
            10: "",
            11: "",
            12: "",
            13: "",
            14: "",
            15: "",
        },
        [14] * 8,
        second_thread=112,
    ),
    # lscpu: util-linux, tests/expected/lscpu/lscpu-x86_64-epyc_7451. Four dies in each socket.
    "two EPYC 7451": Topology(
        {0: "0-23,48-71", 1: "24-47,72-95"},
        [24, 24],
        {
            0: "0-5,48-53",
            1: "6-11,54-59",
            2: "12-17,60-65",
            3: "18-23,66-71",
            4: "24-29,72-77",
            5: "30-35,78-83",
            6: "36-41,84-89",
            7: "42-47,90-95",
        },
        [6] * 8,
        second_thread=48,
    ),
    # lscpu of a node of the cluster Stellar (Princeton). NPS4, SMT off.
    "two EPYC 7H12, NPS4": Topology(
        {0: "0-63", 1: "64-127"},
        [64, 64],
        {0: "0-15", 1: "16-31", 2: "32-47", 3: "48-63", 4: "64-79", 5: "80-95", 6: "96-111", 7: "112-127"},
        [16] * 8,
    ),
    # lscpu: util-linux, tests/expected/lscpu/lscpu-x86_64-dell_poweredgeR610. Sockets take turns in the numbers.
    "PowerEdge R610": Topology(
        {0: "0,2,4,6,8,10,12,14", 1: "1,3,5,7,9,11,13,15"},
        [4, 4],
        {0: "0,2,4,6,8,10,12,14", 1: "1,3,5,7,9,11,13,15"},
        [4, 4],
        second_thread=8,
        sibling_file="thread_siblings_list",
    ),
    # sysfs: hwloc, tests/hwloc/linux/offline-cpu0-node0. Some processors are offline, and so is the memory of node 0:
    # it has no folder; node 1 still lists its offline processors.
    "PowerEdge R630, two Xeon E5-2680 v3, partly offline": Topology(
        {0: "4,6,8,10,12,14,16,18,20", 1: "5,7,9,11,13,15,17,19"},
        [9, 8],
        {1: "1,3,5,7,9,11,13,15,17,19,21,23"},
        [9, 8],
        sibling_file="thread_siblings_list",
        offline="0-3,21-23",
    ),
    # sysfs: hwloc, tests/hwloc/linux/16em64t-4s2c2t-offlines. One thread or both of some cores are offline. Its kernel
    # had masks in place of lists: restated as lists.
    "four Xeon of 2006, partly offline": Topology(
        {0: "0,4,8,12", 1: "1,9", 2: "6,10", 3: "3,7,11,15"},
        [2, 1, 2, 2],
        {0: "0-15"},
        [7],
        second_thread=8,
        sibling_file="thread_siblings_list",
        offline="2,5,13-14",
    ),
    # lscpu: util-linux, tests/expected/lscpu/lscpu-armv7. No memory nodes.
    "two cores of ARMv7": Topology({0: "0-1"}, [2], {}, [2], sibling_file="thread_siblings_list"),
}
