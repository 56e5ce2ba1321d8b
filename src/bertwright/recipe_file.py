"""The recipe file: its values before they are checked, with preset and overrides applied, and how they are written."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from bertwright.core.dotted import value_at
from bertwright.core.files import read_text, write_atomic
from bertwright.core.overrides import apply_overrides, apply_preset, override_key
from bertwright.core.toml import MAX_BYTES, read_toml
from bertwright.shipped import find_recipe


@dataclass(frozen=True)
class Written:
    """The values of a recipe file before they are checked, with its preset and overrides applied."""

    file: str
    values: dict[str, Any]
    lines: dict[str, int]
    """The line of each dotted key; 0 is the command line."""

    @staticmethod
    def read(path: Path | str, overrides: Sequence[str], model: type[BaseModel]) -> Written:
        """Read them as `Recipe.load` does; `model` is the recipe's class, which says where names stand for sections."""
        path = find_recipe(path)
        values, lines = read_toml(path)
        overrides = apply_preset(values, lines, overrides, str(path), model)
        apply_overrides(values, overrides, model)
        return Written(str(path), values, _overridden(lines, overrides))

    def where_set(self, dotted: str) -> str:
        """Where a key is written: a line of the file, or the command line; "" if it is not."""
        parts = rest = dotted.split(".")
        value: Any = self.values
        while rest and ((inner := value_at(value, rest[0])) is not None or rest[0] == "0"):
            # One table, or a text, may stand for a list of one.
            value, rest = value if inner is None else inner, rest[1:]
        # A text may stand for a section: the name of a kind, or the path of a source.
        if rest and not (isinstance(value, str) and rest in (["kind"], ["path"])):
            return ""
        above = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
        line = next((self.lines[key] for key in above if key in self.lines), -1)
        return "the command line" if line == 0 else f"{self.file}, line {line}" if line > 0 else self.file


def _overridden(lines: Mapping[str, int], overrides: Sequence[str]) -> dict[str, int]:
    """The lines of keys after the overrides: 0 for each of these, none for the keys below it, whose values are gone."""
    keys = [override_key(override) for override in overrides]
    below = tuple(f"{key}." for key in keys)
    return {key: line for key, line in lines.items() if not key.startswith(below)} | dict.fromkeys(keys, 0)


def write_values(path: Path, values: Mapping[str, Any]) -> None:
    """Write values as TOML, unless the file already has exactly these values."""
    # A file with equal values is left untouched, whatever its comments: a user may have written it.
    if not _has_values(path, values):
        import tomli_w  # missing where a Python has only what training a prepared run needs

        write_atomic(path, tomli_w.dumps(values).encode())


def _has_values(path: Path, values: Mapping[str, Any]) -> bool:
    """Whether there is a TOML file at `path` with exactly these values."""
    with suppress(FileNotFoundError, ValueError, RecursionError):  # not TOML, not UTF-8, too large or too deep
        return tomllib.loads(read_text(path, MAX_BYTES, "utf-8-sig")) == values
    return False
