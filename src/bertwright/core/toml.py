"""Reads TOML into a frozen model, with errors that name the line, the key and the nearest valid one.

All independent mistakes are reported at once, each as `file:line: key: what is wrong`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from bertwright.core.dotted import leaves
from bertwright.core.errors import RecipeError
from bertwright.core.files import read_bytes
from bertwright.core.json_values import refuse_depth
from bertwright.core.overrides import override_key, set_key
from bertwright.core.validation_messages import toml_remedy

MAX_BYTES = 4 * 2**20
"""Maximum size of a TOML file in bytes."""
_HEADER = re.compile(r"^\s*(\[\[?)\s*([A-Za-z0-9_.\-\s\"']+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*([A-Za-z0-9_.\-\"']+)\s*=")


def read_toml(path: Path, noun: str = "recipe") -> tuple[dict[str, Any], dict[str, int]]:
    """The values of a TOML file, and the line number of each dotted key that starts a line; `noun` is what errors call
    the file."""
    try:
        # Bounded, because a user may give the path of a dump instead of a recipe.
        text = read_bytes(path, MAX_BYTES).decode("utf-8-sig")  # Windows editors add a byte order mark
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RecipeError(f"cannot read the {noun} {path}: {reason}. Give the path of a TOML file in UTF-8.") from error
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"{path}: not valid TOML: {error}. {toml_remedy(text, str(error))}") from error
    except (RecursionError, ValueError) as error:
        raise RecipeError(
            f"{path}: a value is nested too deeply, or a number is too large. Reduce the nesting or the number."
        ) from error
    return values, _lines(text)


def validate(
    model: type[BaseModel],
    values: Mapping[str, Any],
    file: str,
    lines: Mapping[str, int],
    where_is: Callable[[type[BaseModel], str], str] | None = None,
    overrides: Sequence[str] = (),
) -> Any:
    """Build `model` from `values`, or raise one `RecipeError` with every mistake; `where_is` explains unknown keys.

    `overrides` have been applied to `values`. Where a key holds text, the text of its override is put there as typed:
    `time=12:00:00` is a time in TOML, and a shell removes the quotes that would make it text.
    """
    # Before pydantic, whose errors for these would name neither the file nor the key.
    _refuse_monsters(values, file)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        from bertwright.core.validation_messages import keys_of_text, validation_messages  # not needed at every start

        wrong = keys_of_text(model, error)
        if texts := [override for override in overrides if override_key(override) in wrong]:
            for override in texts:
                set_key(cast(dict[str, Any], values), override_key(override), override.partition("=")[2], model)
            return validate(model, values, file, lines, where_is)
        raise RecipeError(validation_messages(model, error, file, lines, where_is)) from error


def _refuse_monsters(values: Mapping[str, Any], file: str) -> None:
    """Raise `RecipeError` for valid TOML that no setting accepts: deep nesting, integers beyond 64 bits, NUL."""
    try:
        refuse_depth(dict(values))
    except ValueError as error:
        raise RecipeError(f"{file}: {error}. Reduce the nesting.") from error
    for key, value in leaves(values):
        if isinstance(value, str) and "\0" in value:
            raise RecipeError(
                f"{file}: {key}: a text contains the character NUL, which no path or name may contain. Remove it."
            )
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise RecipeError(f"{file}: {key}: a whole number does not fit into 64 bits. Use a smaller one.")


def _lines(text: str) -> dict[str, int]:
    table, arrays, lines = "", dict[str, int](), dict[str, int]()
    # Not `splitlines`: in TOML, a line separator in a comment ends no line.
    for number, line in enumerate(text.split("\n"), 1):
        if header := _HEADER.match(line):
            table = re.sub(r"[\s\"']", "", header[2])
            if header[1] == "[[":
                arrays[table] = arrays.get(table, -1) + 1
            for name, index in arrays.items():
                if table == name or table.startswith(name + "."):
                    table = f"{name}.{index}{table[len(name) :]}"
                    break
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            name = re.sub(r"[\"']", "", key[1])
            lines[f"{table}.{name}" if table else name] = number
    return lines
