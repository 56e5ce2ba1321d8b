"""Interpreters and launchers in front of a program: their options, and how many processes they start where.

`launchers.toml` lists the options of each. What a job file states about the machines is kept with them (`Statement`).
"""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from bertwright.core.config import Section
from bertwright.core.errors import RecipeError

SRUN = "srun"
"""The launcher whose options lines of a job (`#SBATCH`) also set."""


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
    parts: tuple[str, ...] = ()
    """Options that set the number of processes of a part of a node; only the machine knows how many parts it has."""
    values: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    attached: bool = False
    """Whether the value of a one-letter option may follow without a space: -N2."""
    uncounted: str = ""
    """What it starts if no number of processes is given, if that depends on the machine; empty: one process."""

    def takes(self, option: str) -> int | None:
        """Return how many words follow an option; None if there is no such option."""
        if option in self.pairs:
            return 2
        if option in self.flags:
            return 0
        return 1 if any(option in group for group in (*self.counting, self.devices, self.parts, self.values)) else None

    def split(self, word: str) -> tuple[str, str | None]:
        """Split a word into an option, with its dashes, and the value that it contains; None if it contains none."""
        option, equals, value = word.partition("=")
        # Also with one dash, a known name is not a letter with its value: -np of mpirun.
        long = word.startswith("--") or self.takes(plain(option)) is not None
        if self.attached and not long and len(word) > 2 and self.takes(word[1]) == 1:
            return word[:2], word[2:]
        return option, value if equals else None

    @property
    def counting(self) -> tuple[tuple[str, ...], ...]:
        """The names of the options for the number of all processes, of those per node, and of nodes."""
        return self.ranks, self.processes, self.nodes

    def nearest(self, option: str) -> str:
        """Return the option whose name is most like `option`, as the end of a sentence; a full stop if none is."""
        groups = (*self.counting, self.devices, self.parts, self.values, self.pairs, self.flags)
        near = difflib.get_close_matches(option, [name for group in groups for name in group], n=1)
        return f"; did you mean {dashed(near[0])}?" if near else "."


@cache
def launchers() -> dict[str, Launcher]:
    """Return every launcher by each of its names."""
    table = tomllib.loads(resources.files(__package__).joinpath("launchers.toml").read_text(encoding="utf-8"))
    every = [Launcher(table=name, **entry) for name, entry in table.items()]
    return {name: launcher for launcher in every for name in launcher.names}


def plain(option: str) -> str:
    """Return the name of an option without dashes, as in the tables."""
    return option.lstrip("-").replace("-", "_")


def dashed(option: str) -> str:
    """Return the name of an option with the dashes in front of it."""
    return f"{'--' if len(option) > 1 else '-'}{option}"


class Statement(NamedTuple):
    """A setting of the machines outside of a command: as a key of a place, or with the reason why no place has it."""

    setting: str
    """The setting with its value."""
    key: str = ""
    """The key of the place; empty: none."""
    value: Any = None
    """The value of the key; None: the file has a placeholder for it, which the user has to replace."""
    why: str = ""
    """Why no place has the setting."""
    shows: str = ""
    """The folder whose events TensorBoard shows, if this sets it; empty: it does not."""

    @property
    def left(self) -> str:
        """The setting and the reason why no place has it; empty if a key holds it."""
        return "" if self.key else f"{self.setting}: {self.why}"


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
class _Options:
    """What the options of a launcher state."""

    counts: dict[str, int] = field(default_factory=dict)
    """The numbers of processes and nodes, each by the first of the option's names."""
    machine: dict[str, str] = field(default_factory=dict)
    in_parts: bool = False
    """Whether an option sets the processes of a part of a node."""


def _strip(
    launcher: Launcher, name: str, words: tuple[str, ...], launch: Launch, job: tuple[str, ...]
) -> tuple[Launch, tuple[str, ...]]:
    options = _Options()
    _read_job(launcher, job, options)
    # The launcher is `accelerate launch`, two words.
    at = 1 if words[:1] == ("launch",) and "accelerate" in launcher.names else 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        at = _read(launcher, name, words, at, options)
    ranks, processes, nodes = (
        next((options.counts[option] for option in group[:1] if option in options.counts), None)
        for group in launcher.counting
    )
    if ranks:
        # A number of nodes is exact; beside it, the number per node only limits how the processes are distributed.
        on_nodes, per_node = _spread(name, ranks, 0 if nodes else processes or 0, nodes or launch.nodes)
    else:
        on_nodes, per_node = nodes or launch.nodes, processes or launch.processes
    rest = words[at + 1 :] if words[at : at + 1] == ("--",) else words[at:]
    uncounted = _uncounted(launcher, name, options, launch)
    # What srun starts runs within a Slurm job, whatever starts the processes on each node.
    states = options.counts or options.machine or uncounted
    by = launcher.table if launch.by != SRUN and states else launch.by
    return Launch(on_nodes, per_node, by, (*launch.machine, *options.machine.items()), uncounted), rest


def _read(launcher: Launcher, name: str, words: tuple[str, ...], at: int, options: _Options) -> int:
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
        options.counts[group[0]] = _count(name, option, value)
    elif known in launcher.devices and (listed := _devices(name, option, value)):
        options.counts[launcher.nodes[0]], options.counts[launcher.processes[0]] = listed
    elif known in launcher.parts:
        options.in_parts = True
    elif following:
        options.machine[known] = value
    return end


def _read_job(launcher: Launcher, words: tuple[str, ...], options: _Options) -> None:
    """Read the options of a job. There are many more than srun has; of the others, only the names are kept."""
    at = 0
    while at < len(words):
        option = plain(launcher.split(words[at])[0])
        if launcher.takes(option) is not None:
            at = _read(launcher, "#SBATCH", words, at, options)
            continue
        options.machine[option] = ""
        alone = "=" in words[at] or words[at + 1 : at + 2] == () or words[at + 1].startswith("-")
        at += 1 if alone else 2


def _uncounted(launcher: Launcher, name: str, options: _Options, launch: Launch) -> Uncounted | None:
    counting = (*launcher.ranks, *launcher.processes)
    # Slurm starts one process on each node if only the nodes are counted.
    enough = (*counting, *launcher.nodes) if launcher.table == SRUN and not options.in_parts else counting
    if not options.counts.keys().isdisjoint(enough):
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
