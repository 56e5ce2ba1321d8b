"""One command of another program: its settings and the number of processes it is started with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from bertwright.translate.arguments import Setting, Value
from bertwright.translate.launchers import Launch
from bertwright.translate.program import Program

PHASE = "train.phases.0."
"""Prefix of the keys of the phase that a command trains, whichever phase of the recipe it becomes."""
ASSUMED = "assumed."
"""Prefix of the keys of the vocabulary that a training assumes. Only the commands that make its data know it."""


class Key(NamedTuple):
    """A recipe key, its value, and where the value comes from."""

    key: str
    value: Any
    why: str = ""


@dataclass(frozen=True)
class Command:
    """A command whose options are parsed."""

    program: Program
    settings: Mapping[str, Setting]
    launch: Launch
    text: str
    """The command as typed."""
    folder: Path = Path()
    """The folder that the files it names are in, unless their paths say another."""

    def __getitem__(self, name: str) -> Value | None:
        return self.settings[name].value if name in self.settings else None

    def number(self, name: str, default: float = 0.0) -> float:
        """Return the value of a numeric option, or `default`."""
        value = self[name]
        return float(value) if isinstance(value, int | float) else default

    def file(self, name: str) -> Path:
        """Return the file that an option names."""
        return self.folder / Path(str(self[name])).expanduser()

    def source(self, *names: str) -> str:
        """Return the options that a value comes from as text for a comment."""
        given = [self.settings[name] for name in names if name in self.settings]
        said = [setting.text for setting in given if setting.said]
        unsaid = [setting.text for setting in given if not setting.said]
        return ", ".join([*said, *(f"{text} left at its default" for text in unsaid)])
