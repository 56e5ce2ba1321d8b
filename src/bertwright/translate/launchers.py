"""Interpreters and launchers in front of a program, and how many processes they start."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import NamedTuple

from bertwright.core.errors import RecipeError
from bertwright.translate.launcher_table import SRUN, Launcher, dashed, launchers, plain
from bertwright.translate.statement import Statement


class Uncounted(NamedTuple):
    """A launcher that is given no number of processes and starts as many as the machine has room for."""

    option: str
    """The launcher and the option that would give the number, such as "deepspeed without --num_gpus"."""
    starts: str
    """What it starts instead."""


@dataclass(frozen=True)
class Launch:
    """The number of processes that a command is started with."""

    nodes: int = 1
    processes: int = 1
    """Processes per node, unless `uncounted`."""
    by: str = ""
    """What starts several processes or describes the machine: its table in `launchers.toml`."""
    machine: tuple[tuple[str, str], ...] = ()
    """Options of launchers that describe the machine, without dashes, each with its value."""
    uncounted: Uncounted | None = None
    """Set if the command does not determine the number of processes."""
    stated: tuple[Statement, ...] = ()
    """What is stated about the machines outside of the command."""

    @property
    def ranks(self) -> int | None:
        """Number of processes on all nodes; None if only the machine knows it."""
        return None if self.uncounted else self.nodes * self.processes

    def after(self, earlier: Launch) -> Launch:
        """Return this launch with what is stated about the machines of an earlier one of the same script."""
        return replace(self, stated=(*earlier.stated, *self.stated))


def strip_launchers(words: tuple[str, ...], job: tuple[str, ...] = ()) -> tuple[Launch, tuple[str, ...]]:
    """Return how many processes a command is started with, and the command without its launchers.

    `job` are options of the Slurm job that the command runs in; srun starts what they say where its own options do not.
    Raises `RecipeError` for an unknown option of a launcher, and for an invalid number of processes.
    """
    launch = Launch()
    # A path of only a dot has no name.
    while words and (launcher := launchers().get(PurePosixPath(words[0]).name or words[0])):
        launch, words = _strip(launcher, words[0], words[1:], launch, job if launcher.table == SRUN else ())
    return launch, words


@dataclass
class _Said:
    """What the options of a launcher state."""

    counts: dict[str, int] = field(default_factory=dict)
    """The numbers of processes and nodes, each by the first of the option's names."""
    machine: dict[str, str] = field(default_factory=dict)
    in_parts: bool = False
    """Whether an option sets the processes of a part of a node."""


def _strip(
    launcher: Launcher, name: str, words: tuple[str, ...], launch: Launch, job: tuple[str, ...]
) -> tuple[Launch, tuple[str, ...]]:
    said = _Said()
    _read_job(launcher, job, said)
    # The launcher is `accelerate launch`, two words.
    at = 1 if words[:1] == ("launch",) and "accelerate" in launcher.names else 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        at = _read(launcher, name, words, at, said)
    ranks, processes, nodes = (
        next((said.counts[option] for option in group[:1] if option in said.counts), None)
        for group in launcher.counting
    )
    if ranks:
        # A number of nodes is exact; beside it, the number per node only limits how the processes are distributed.
        on_nodes, per_node = _spread(name, ranks, 0 if nodes else processes or 0, nodes or launch.nodes)
    else:
        on_nodes, per_node = nodes or launch.nodes, processes or launch.processes
    rest = words[at + 1 :] if words[at : at + 1] == ("--",) else words[at:]
    uncounted = _uncounted(launcher, name, said, launch)
    # What srun starts runs within a Slurm job, whatever starts the processes on each node.
    states = said.counts or said.machine or uncounted
    by = launcher.table if launch.by != SRUN and states else launch.by
    return Launch(on_nodes, per_node, by, (*launch.machine, *said.machine.items()), uncounted), rest


def _read(launcher: Launcher, name: str, words: tuple[str, ...], at: int, said: _Said) -> int:
    """Read the option at a word; return the index of the word that follows it and its values."""
    option, held = launcher.split(words[at])
    known = plain(option)
    following = launcher.takes(known)
    if following is None:
        raise RecipeError(
            f"{name}: {option} is not known here{launcher.nearest(known)} If it does not set the number of processes, "
            "leave it out."
        )
    # MPI takes a variable and its value as two words or, with an equals sign, as one.
    if known in launcher.pairs and "=" in "".join(words[at + 1 : at + 2]):
        following = 1
    end = at + 1 + (following if held is None else 0)
    value = " ".join(words[at + 1 : end]) if held is None else held
    if group := next((group for group in launcher.counting if known in group), ()):
        said.counts[group[0]] = _count(name, option, value)
    elif known in launcher.devices and (listed := _devices(name, option, value)):
        said.counts[launcher.nodes[0]], said.counts[launcher.processes[0]] = listed
    elif known in launcher.parts:
        said.in_parts = True
    elif following:
        said.machine[known] = value
    return end


def _read_job(launcher: Launcher, words: tuple[str, ...], said: _Said) -> None:
    """Read the options of a job. There are many more than srun has; of the others, only the names are kept."""
    at = 0
    while at < len(words):
        option = plain(launcher.split(words[at])[0])
        if launcher.takes(option) is not None:
            at = _read(launcher, "#SBATCH", words, at, said)
            continue
        said.machine[option] = ""
        alone = "=" in words[at] or words[at + 1 : at + 2] == () or words[at + 1].startswith("-")
        at += 1 if alone else 2


def _uncounted(launcher: Launcher, name: str, said: _Said, launch: Launch) -> Uncounted | None:
    counting = (*launcher.ranks, *launcher.processes)
    # Slurm starts one process on each node if only the nodes are counted.
    enough = (*counting, *launcher.nodes) if launcher.table == SRUN and not said.in_parts else counting
    if not said.counts.keys().isdisjoint(enough):
        return None
    if not launcher.uncounted:
        return launch.uncounted
    return Uncounted(f"{PurePosixPath(name).name} without {dashed(counting[0])}", launcher.uncounted)


def _spread(name: str, ranks: int, processes: int, nodes: int) -> tuple[int, int]:
    """Return nodes and processes per node for `ranks` processes; `processes` is the maximum per node, 0: not set."""
    # With mpirun the total and the number per node together determine the number of nodes.
    whole = min(ranks, processes or nodes)
    if ranks % whole:
        where = f"on nodes of {processes}" if processes else f"over {nodes} nodes"
        raise RecipeError(
            f"{name} starts {ranks} processes {where}, so the nodes would have different numbers of processes, "
            "which no place supports. Give numbers of which one divides the other."
        )
    return (ranks // whole, whole) if processes else (whole, ranks // whole)


def _devices(name: str, option: str, text: str) -> tuple[int, int] | None:
    """Return nodes and devices per node of a list such as node1:0,1@node2:0,1; None for nodes with all their devices.

    The format is that of DeepSpeed's launcher.
    """
    listed = [node.partition(":")[2] for node in text.split("@")]
    counts = {len(devices.split(",")) if devices else 0 for devices in listed}
    if len(counts) > 1:
        raise RecipeError(
            f"{name} {option} {text} starts different numbers of processes on the nodes, which no place supports. List "
            "as many devices for each node."
        )
    count = counts.pop()
    return (len(listed), count) if count else None


def _count(name: str, option: str, text: str) -> int:
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise RecipeError(f"{name} {option} {text}: the number of processes depends on the machine. Write the number.")
