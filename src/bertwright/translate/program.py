"""What is known of another program's command line: a file of `programs/` each, with the keys of `originals.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from pathlib import PurePosixPath
from typing import Any, Literal

from pydantic import Field

from bertwright.core.config import Section
from bertwright.explain import Original, originals


class Option(Section):
    """One option, variable or positional argument."""

    type: Literal["text", "int", "float", "switch", "flag"] = "text"
    """`flag` has no value; `switch` has true or false (or 1 or 0)."""
    default: str | int | float | bool | None = None
    """What holds there when nothing is said; None: nothing does."""
    required: bool = False
    """Whether the program refuses to start without it."""
    choices: tuple[str, ...] = ()
    short: str = ""
    """Its other name."""
    becomes: str = ""
    """The function in `conversions/` that turns it into keys; empty: its value is that of the key in `originals.toml`,
    or of none."""


class Start(Section):
    """A command that a launching script starts."""

    launcher: str = ""
    """What it puts in front; `$name` is the value of an argument."""
    command: tuple[str, ...]
    when: tuple[tuple[str, ...], ...] = ()
    """Further words, each list after its condition: "precision=fp16"."""


class Remark(Section):
    """Something wrong or contradictory in what a program, its scripts or its documents do."""

    says: str
    said: tuple[str, ...] = ()
    """Options that must have been given for it to hold."""
    unsaid: tuple[str, ...] = ()
    """Options that must not have been given."""
    equal: dict[str, str | int | float | bool] = Field({})
    """Values that must hold."""
    other: dict[str, str | int | float | bool] = Field({})
    """Values that must not."""


class Program(Section):
    """One program."""

    title: str
    """Its name in sentences."""
    scripts: tuple[str, ...]
    """The files, modules or commands that start it."""
    explained: tuple[str, ...]
    """The tables of `originals.toml` with its options, the first that has one."""
    phase: Literal["training", "data", "script"]
    """Whether a command is a training phase, prepares data, or starts others of these."""
    recipe: dict[str, Any] = Field({})
    """What the program does whatever its options say, by key; each a value, or [value, why]."""
    options: dict[str, Option]
    positions: tuple[str, ...] = ()
    """The options that are given by their place, in order; two names at a place both get its value."""
    several: str = ""
    """The option that all further arguments belong to."""
    variables: tuple[str, ...] = ()
    """The options that are given as variables of the shell. Of a script all may be: that is an edited default."""
    starts: tuple[Start, ...] = ()
    remarks: tuple[Remark, ...] = ()

    @property
    def unnamed(self) -> set[str]:
        """The options that are not given by a name with dashes."""
        named = (name for place in (*self.positions, self.several) for name in place.split())
        return {*self.options} if self.phase == "script" else {*named, *self.variables}

    def original(self, name: str) -> Original | None:
        """What `originals.toml` says of an option."""
        found = {o.table: o for o in originals().get(name.replace("-", "_"), ()) if o.name == name}
        return next((found[table] for table in self.explained if table in found), None)


@cache
def programs() -> dict[str, Program]:
    """Every program by the name of its file."""
    folder = resources.files(__package__).joinpath("programs")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name)
    return {
        file.name.removesuffix(".toml"): Program(**tomllib.loads(file.read_text(encoding="utf-8"))) for file in files
    }


def called(script: str) -> list[Program]:
    """The programs that a file, module or command of this name may start, by the names of their files."""
    name = PurePosixPath(script).name
    return [program for program in programs().values() if name in program.scripts]
