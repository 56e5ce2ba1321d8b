"""Command lines of other programs: one file in `programs/` for each, with the keys of `originals.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath
from typing import Any, Literal

from pydantic import Field

from bertwright.core.config import Section
from bertwright.explain import Original, originals


class Option(Section):
    """One option, environment variable or positional argument."""

    type: Literal["text", "int", "float", "switch", "flag", "words"] = "text"
    """`flag` takes no value; `switch` takes true or false (or 1 or 0); `words` takes all up to the next option."""
    on: bool = False
    """Whether a switch is on by default; transformers' parser then has its opposite, `--no_NAME`."""
    default: str | int | float | bool | None = None
    """The value that applies if the option is not given; None: no value."""
    required: bool = False
    """Whether the program refuses to start without it."""
    choices: tuple[str, ...] = ()
    short: str = ""
    """Its short name."""
    becomes: str = ""
    """The function in `conversions/` that converts it to keys; empty: the value is copied to the key in
    `originals.toml`, if there is one."""


class Start(Section):
    """A command that a launching script starts."""

    launcher: str = ""
    """The launcher in front of the command; `$name` is the value of an argument."""
    command: tuple[str, ...]
    when: tuple[tuple[str, ...], ...] = ()
    """Additional words, each list preceded by its condition, such as "precision=fp16" or "gpus!=1"."""


class Remark(Section):
    """A mistake or contradiction in a program, its scripts or its documentation."""

    text: str
    given: tuple[str, ...] = ()
    """Options that must be given for the remark to apply."""
    not_given: tuple[str, ...] = ()
    """Options that must not be given."""
    equal: dict[str, str | int | float | bool] = Field({})
    """Values that options must have."""
    other: dict[str, str | int | float | bool] = Field({})
    """Values that options must not have."""


class Program(Section):
    """One program."""

    title: str
    """Its name in messages."""
    scripts: tuple[str, ...]
    """The files, modules or commands that start the program."""
    explained: tuple[str, ...]
    """The tables of `originals.toml` with its options; the first that contains an option is used."""
    phase: Literal["training", "data", "script"]
    """Whether a command is a training phase, prepares data, or is a script that starts other programs."""
    recipe: dict[str, Any] = Field({})
    """Keys that hold for the program whatever its options are; each a value, or [value, why]."""
    options: dict[str, Option]
    positions: tuple[str, ...] = ()
    """The positional options, in order; two names at one position both get its value."""
    several: str = ""
    """The option that receives all further arguments."""
    variables: tuple[str, ...] = ()
    """Options given as shell variables. For a script, all of them may be: that is an edited default."""
    starts: tuple[Start, ...] = ()
    remarks: tuple[Remark, ...] = ()
    parser: Literal["argparse", "transformers"] = "argparse"
    """`transformers`: names may have hyphens in place of underscores, and a JSON file alone may hold all options."""

    @property
    def unnamed(self) -> set[str]:
        """The options that are not given by a name with dashes."""
        named = (name for place in (*self.positions, self.several) for name in place.split())
        return {*self.options} if self.phase == "script" else {*named, *self.variables}

    def original(self, name: str) -> Original | None:
        """Return the entry of an option in `originals.toml`; None if there is none."""
        found = {o.table: o for o in originals().get(name.replace("-", "_"), ()) if o.name == name}
        return next((found[table] for table in self.explained if table in found), None)


@cache
def programs() -> dict[str, Program]:
    """Return every program by the name of its file."""
    folder = resources.files(__package__).joinpath("programs")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name)
    return {file.name.removesuffix(".toml"): Program(**_with_shared(folder, file)) for file in files}


def _with_shared(folder: Traversable, file: Traversable) -> dict[str, Any]:
    """Return the values of a program's file, with the options that several programs have in common (`shares`)."""
    values = tomllib.loads(file.read_text(encoding="utf-8"))
    for name in values.pop("shares", ()):
        shared = folder.joinpath("shared", f"{name}.toml").read_text(encoding="utf-8")
        values["options"] |= tomllib.loads(shared)
    return values


def called(script: str) -> list[Program]:
    """Return the programs that a file, module or command of this name may start, ordered by their file names."""
    name = PurePosixPath(script).name
    # A module, as after -m, is known by its file.
    names = {name, f"{name.rpartition('.')[2]}.py"}
    return [program for program in programs().values() if not names.isdisjoint(program.scripts)]
