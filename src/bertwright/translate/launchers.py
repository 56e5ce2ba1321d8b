"""Interpreters and launchers in front of a program, and how many processes they start."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import PurePosixPath
from typing import NamedTuple

from bertwright.core.config import Section
from bertwright.core.errors import RecipeError


class Launcher(Section):
    """The options of one launcher, without leading dashes and with `-` written as `_`."""

    table: str
    """Its name in `launchers.toml`."""
    names: tuple[str, ...]
    ranks: tuple[str, ...] = ()
    """Options that set the number of processes on all nodes together."""
    processes: tuple[str, ...] = ()
    """Options that set the number of processes per node."""
    nodes: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    """Options that list the devices of each node, such as node1:0,1@node2:0,1; each device gets a process."""
    values: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    uncounted: str = ""
    """What it starts if no number of processes is given, if that depends on the machine; empty: one process."""

    def takes(self, option: str) -> int | None:
        """Return how many words follow an option; None if there is no such option."""
        if option in self.pairs:
            return 2
        if option in self.flags:
            return 0
        return 1 if option in (*self.ranks, *self.processes, *self.nodes, *self.devices, *self.values) else None


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

    @property
    def ranks(self) -> int | None:
        """Number of processes on all nodes; None if only the machine knows it."""
        return None if self.uncounted else self.nodes * self.processes


@cache
def launchers() -> dict[str, Launcher]:
    """Return every launcher by each of its names."""
    table = tomllib.loads(resources.files(__package__).joinpath("launchers.toml").read_text(encoding="utf-8"))
    every = [Launcher(table=name, **entry) for name, entry in table.items()]
    return {name: launcher for launcher in every for name in launcher.names}


def strip_launchers(words: tuple[str, ...]) -> tuple[Launch, tuple[str, ...]]:
    """Return how many processes a command is started with, and the command without its launchers.

    Raises `RecipeError` for an unknown option of a launcher, and for an invalid number of processes.
    """
    launch = Launch()
    while words and (launcher := launchers().get(PurePosixPath(words[0]).name)):
        launch, words = _strip(launcher, words[0], words[1:], launch)
    return launch, words


def _strip(launcher: Launcher, name: str, words: tuple[str, ...], launch: Launch) -> tuple[Launch, tuple[str, ...]]:
    said: dict[str, int] = {}
    machine: list[tuple[str, str]] = []
    at = 1 if words[:1] == ("launch",) and "accelerate" in launcher.names else 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        option, equals, value = words[at].partition("=")
        plain = option.lstrip("-").replace("-", "_")
        if (following := launcher.takes(plain)) is None:
            raise RecipeError(f"{name} has no option {option}{_nearest(launcher, plain)}.")
        # MPI takes a variable and its value as two words or, with an equals sign, as one.
        if plain in launcher.pairs and "=" in "".join(words[at + 1 : at + 2]):
            following = 1
        end = at + 1 + (0 if equals else following)
        value = value if equals else " ".join(words[at + 1 : end])
        if plain in (*launcher.ranks, *launcher.processes, *launcher.nodes):
            said[plain] = _count(name, option, value)
        elif plain in launcher.devices and (listed := _devices(name, option, value)):
            said[launcher.nodes[0]], said[launcher.processes[0]] = listed
        elif following:
            machine.append((plain, value))
        at = end
    nodes = next((said[option] for option in launcher.nodes if option in said), launch.nodes)
    processes = next((said[option] for option in launcher.processes if option in said), launch.processes)
    if ranks := next((said[option] for option in launcher.ranks if option in said), 0):
        stated = any(option in said for option in launcher.processes)
        nodes, processes = _spread(name, ranks, processes if stated else 0, nodes)
    rest = words[at + 1 :] if words[at : at + 1] == ("--",) else words[at:]
    uncounted = _uncounted(launcher, name, said, launch)
    # What srun starts runs within a Slurm job, whatever starts the processes on each node.
    by = launcher.table if launch.by != "srun" and (said or machine or uncounted) else launch.by
    return Launch(nodes, processes, by, (*launch.machine, *machine), uncounted), rest


def _uncounted(launcher: Launcher, name: str, said: dict[str, int], launch: Launch) -> Uncounted | None:
    counting = (*launcher.ranks, *launcher.processes)
    if not said.keys().isdisjoint(counting):
        return None
    if not launcher.uncounted:
        return launch.uncounted
    dashes = "--" if len(counting[0]) > 1 else "-"
    return Uncounted(f"{PurePosixPath(name).name} without {dashes}{counting[0]}", launcher.uncounted)


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


def _nearest(launcher: Launcher, option: str) -> str:
    known = (
        *launcher.ranks, *launcher.processes, *launcher.nodes, *launcher.devices, *launcher.values, *launcher.pairs,
        *launcher.flags,
    )  # fmt: skip
    near = difflib.get_close_matches(option, known, n=1)
    return f"; did you mean --{near[0]}?" if near else ""
