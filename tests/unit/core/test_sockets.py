"""Sockets and memory nodes as Linux tells them, on files written by the documented formats, some as recorded on real
machines."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from tests.rows import each_row
from tests.unit.core.topologies import RECORDED, Topology

from bertwright.core import resources as module
from bertwright.core.errors import RecipeError
from bertwright.core.resources import Processors, processors_in, processors_of

Machine = Callable[..., None]


def listed(cpus: Sequence[int]) -> str:
    return ",".join(map(str, cpus)) + "\n"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """`machine(cores, nodes, allowed)`: `cores` are (socket, hardware threads), `nodes` the processors of each."""

    def build(
        cores: Sequence[tuple[int, Sequence[int]]],
        nodes: Mapping[int, str] = {},
        allowed: set[int] | None = None,
        sibling_file: str = "core_cpus_list",
    ) -> None:
        for number, (package, threads) in enumerate(cores):
            for thread in threads:
                topology = tmp_path / "cpu" / f"cpu{thread}" / "topology"
                topology.mkdir(parents=True)
                (topology / "physical_package_id").write_text(f"{package}\n")
                (topology / "core_id").write_text(f"{number % 2}\n")  # counted anew in each socket
                (topology / sibling_file).write_text(listed(threads))
        for node, cpus in nodes.items():
            (tmp_path / "node" / f"node{node}").mkdir(parents=True)
            (tmp_path / "node" / f"node{node}" / "cpulist").write_text(f"{cpus}\n")
        online = {thread for _, threads in cores for thread in threads}
        monkeypatch.setattr(module, "SYSTEM", tmp_path)
        monkeypatch.setattr(module.os, "sched_getaffinity", lambda process: online if allowed is None else allowed)

    return build


SMT = [(0, (0, 4)), (0, (1, 5)), (1, (2, 6)), (1, (3, 7))]
"""Two sockets of two cores of two threads, numbered as Linux usually does: second threads after all first ones."""


def test_two_sockets_with_smt(machine: Machine) -> None:
    machine(SMT, {0: "0-1,4-5", 1: "2-3,6-7"})
    expected = ((0, 1, 4, 5), (2, 3, 6, 7))
    assert processors_of("socket") == tuple(Processors(f"socket {i}", cpus, 2) for i, cpus in enumerate(expected))
    assert processors_of("node") == tuple(Processors(f"node {i}", cpus, 2) for i, cpus in enumerate(expected))


def test_older_kernels_name_the_threads_of_a_core_otherwise(machine: Machine) -> None:
    machine(SMT, sibling_file="thread_siblings_list")
    assert [place.cores for place in processors_of("socket")] == [2, 2]


def test_an_offline_core_is_not_there(machine: Machine) -> None:
    """Its folder has no topology, no node lists it, and no process may use it."""
    machine([(0, (0,)), (0, (1,)), (1, (3,))], {0: "0-1", 1: "3"})
    (module.SYSTEM / "cpu" / "cpu2").mkdir()
    assert processors_of("socket") == (Processors("socket 0", (0, 1), 2), Processors("socket 1", (3,), 1))
    assert processors_of("node") == (Processors("node 0", (0, 1), 2), Processors("node 1", (3,), 1))


def test_one_node(machine: Machine) -> None:
    machine([(0, (0,)), (0, (1,))], {0: "0-1"})
    assert processors_of("socket") == (Processors("socket 0", (0, 1), 2),) and processors_of("node") == (
        Processors("node 0", (0, 1), 2),
    )


def test_clusters_in_a_socket_are_nodes(machine: Machine) -> None:
    """Sub-NUMA clustering; a node of memory alone has an empty list."""
    machine([(i // 4, (i,)) for i in range(8)], {0: "0-1", 1: "2-3", 2: "4-5", 3: "6-7", 4: ""})
    assert [place.processors for place in processors_of("socket")] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert [place.processors for place in processors_of("node")] == [(0, 1), (2, 3), (4, 5), (6, 7)]


@pytest.mark.parametrize("recorded", RECORDED.values(), ids=RECORDED)
def test_recorded_machines(recorded: Topology, machine: Machine) -> None:
    machine(recorded.cores, recorded.nodes, sibling_file=recorded.sibling_file)
    for cpu in processors_in(recorded.offline):
        (module.SYSTEM / "cpu" / f"cpu{cpu}").mkdir()
    sockets, nodes = (
        {number: processors_in(cpus) for number, cpus in places.items() if cpus}
        for places in (recorded.sockets, recorded.nodes)
    )
    online = set().union(*sockets.values())
    nodes = {number: cpus & online for number, cpus in nodes.items()}
    if nowhere := online - set().union(*nodes.values()):
        nodes = {0: nowhere, **nodes}
    for kind, places, cores in (("socket", sockets, recorded.socket_cores), ("node", nodes, recorded.node_cores)):
        assert processors_of(kind) == tuple(  # type: ignore[arg-type]
            Processors(f"{kind} {number}", tuple(sorted(cpus)), count)
            for (number, cpus), count in zip(places.items(), cores, strict=True)
        )


def test_only_what_the_process_may_use_is_there(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container with a cpuset: part of one socket, one thread of a core of the other."""
    machine(SMT, {0: "0-1,4-5", 1: "2-3,6-7"}, allowed={1, 5, 6})
    assert processors_of("socket") == (Processors("socket 0", (1, 5), 1), Processors("socket 1", (6,), 1))
    monkeypatch.setattr(module.os, "sched_getaffinity", lambda process: {2, 3, 6, 7})
    assert processors_of("node") == (Processors("node 1", (2, 3, 6, 7), 2),), "and keeps its number"


def test_without_topology_all_processors_are_one_group(machine: Machine) -> None:
    """A virtual machine may tell neither sockets (-1) nor nodes."""
    machine([(-1, (0,)), (-1, (1,))])
    assert processors_of("socket") == (Processors("socket 0", (0, 1), 2),) and processors_of("node") == (
        Processors("node 0", (0, 1), 2),
    )


def test_another_system_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "SYSTEM", tmp_path / "absent")
    with pytest.raises(RecipeError, match=r"the sockets of this machine are unknown: .* torchrun instead"):
        processors_of("socket")


@each_row(
    ("text", "numbers"),
    [("0-3,8-9\n", {0, 1, 2, 3, 8, 9}), ("5\n", {5}), ("\n", set()), ("0,2,4-4", {0, 2, 4})],
)
def test_lists_of_processors(text: str, numbers: set[int]) -> None:
    assert processors_in(text) == numbers
