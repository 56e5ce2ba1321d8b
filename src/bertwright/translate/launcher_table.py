"""The known launchers and interpreters, with the options of each."""

from __future__ import annotations

import difflib
import tomllib
from functools import cache
from importlib import resources

from bertwright.core.config import Section

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
