"""The file of a recipe: its values before they are checked, preset and overrides applied, and how they are written."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.core.files import read_text, write_atomic
from bertwright.core.presets import apply_preset
from bertwright.core.toml import MAX_BYTES, apply_overrides, override_key, read_toml
from bertwright.shipped import find_recipe


@dataclass(frozen=True)
class Written:
    """The values of a recipe's file, its preset and overrides applied, before they are checked."""

    file: str
    values: dict[str, Any]
    lines: dict[str, int]
    """The line of each dotted key; 0 is the command line."""

    @staticmethod
    def read(path: Path | str, overrides: Sequence[str]) -> Written:
        """As `Recipe.load` reads them."""
        path = find_recipe(path)
        values, lines = read_toml(path)
        overrides = apply_preset(values, lines, overrides, str(path))
        apply_overrides(values, overrides)
        return Written(str(path), values, lines | {override_key(override): 0 for override in overrides})


def write_values(path: Path, values: Mapping[str, Any]) -> None:
    """Write values as TOML, unless the file already says exactly that."""
    # An equal file is not touched, whatever its comments: a user may have written it.
    if not _says(path, values):
        import tomli_w  # training what was prepared elsewhere writes no recipe, and does without

        write_atomic(path, tomli_w.dumps(values).encode())


def _says(path: Path, values: Mapping[str, Any]) -> bool:
    """Whether there is a TOML file at `path` with exactly these values."""
    with suppress(FileNotFoundError, ValueError, RecursionError):  # what is no TOML, or no UTF-8, or a monster
        return tomllib.loads(read_text(path, MAX_BYTES)) == values
    return False
