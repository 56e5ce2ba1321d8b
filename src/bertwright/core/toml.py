"""Reads TOML into a frozen model, with errors that name the line, the key and the nearest valid one.

All independent mistakes are reported at once, each as `file:line: key: what is wrong`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from bertwright.core.errors import RecipeError
from bertwright.core.files import read_bytes
from bertwright.core.habits import YAML, remedy
from bertwright.core.json_values import refuse_depth

MAX_BYTES = 4 * 2**20
"""Maximum size of a TOML file in bytes."""
_HEADER = re.compile(r"^\s*(\[\[?)\s*([A-Za-z0-9_.\-\s\"']+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*([A-Za-z0-9_.\-\"']+)\s*=")
_INDEX = re.compile(r"\[(\d+)\]")


def read_toml(path: Path, noun: str = "recipe") -> tuple[dict[str, Any], dict[str, int]]:
    """The values of a TOML file, and the line number of each dotted key that starts a line; `noun` is what errors call
    the file."""
    try:
        # Bounded, because a user may give the path of a dump instead of a recipe.
        text = read_bytes(path, MAX_BYTES).decode("utf-8-sig")  # Windows editors add a byte order mark
    except (OSError, ValueError) as error:
        raise RecipeError(f"cannot read the {noun} {path}: {error}. Give the path of a TOML file in UTF-8.") from error
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"{path}: not valid TOML: {error}. {remedy(text, str(error))}") from error
    except (RecursionError, ValueError) as error:
        raise RecipeError(
            f"{path}: a value is nested too deeply, or a number is too large. Reduce the nesting or the number."
        ) from error
    return values, _lines(text)


def apply_overrides(values: dict[str, Any], overrides: Sequence[str]) -> None:
    """Set each `key=value` in place; the value is read as TOML, or as a plain string if it is not valid TOML.

    An empty value (`key=`) removes the key, so that its default applies.
    """
    for override in overrides:
        dotted, equals, text = override.partition("=")
        if not equals or not dotted or ":" in dotted:
            colon = YAML.match(override)
            example = f"{colon[1]}={colon[2]}" if colon else "key=value, for example train.phases.0.steps=100"
            raise RecipeError(f"{override!r} is not an override. Write {example}.")
        *above, last = override_key(override).split(".")
        if text:
            _set(_descend(values, above, override), last, _value(text), override)
        else:
            _unset(_descend(values, above, override), last, override)


def set_key(values: dict[str, Any], dotted: str, value: Any) -> None:
    """Set a dotted key in place; if `value` is None, remove the key if it exists."""
    *above, last = dotted.split(".")
    holder = _descend(values, above, dotted)
    if value is None and isinstance(holder, dict):
        holder.pop(last, None)
    else:
        _set(holder, last, value, dotted)


def override_key(override: str) -> str:
    """The dotted key of `key=value`; `phases[0]` becomes `phases.0`."""
    return _INDEX.sub(r".\1", override.partition("=")[0])


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
        from bertwright.core.mistakes import keys_of_text, mistakes  # not needed at every start

        wrong = keys_of_text(model, error)
        if texts := [override for override in overrides if override_key(override) in wrong]:
            for override in texts:
                set_key(cast(dict[str, Any], values), override_key(override), override.partition("=")[2])
            return validate(model, values, file, lines, where_is)
        raise RecipeError(mistakes(model, error, file, lines, where_is)) from error


def _refuse_monsters(values: Mapping[str, Any], file: str) -> None:
    """Raise `RecipeError` for valid TOML that no setting accepts: deep nesting, integers beyond 64 bits, NUL."""
    try:
        refuse_depth(dict(values))
    except ValueError as error:
        raise RecipeError(f"{file}: {error}. Reduce the nesting.") from error
    for key, value in _leaves(values, ""):
        if isinstance(value, str) and "\0" in value:
            raise RecipeError(
                f"{file}: {key}: a text contains the character NUL, which no path or name may contain. Remove it."
            )
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise RecipeError(f"{file}: {key}: a whole number does not fit into 64 bits. Use a smaller one.")


def _leaves(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for name, child in inner:
            yield from _leaves(child, f"{key}.{name}" if key else str(name))
    else:
        yield key, value


def _lines(text: str) -> dict[str, int]:
    table, arrays, lines = "", dict[str, int](), dict[str, int]()
    for number, line in enumerate(text.splitlines(), 1):
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


def _value(text: str) -> Any:
    try:
        # So that `model.size=mini` needs no quotes, which a shell would remove.
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


def _descend(values: Any, keys: Sequence[str], override: str) -> Any:
    """The table or list under `keys`; missing tables are created."""
    for key in keys:
        try:
            values = values[int(key)] if isinstance(values, list) else values.setdefault(key, {})
        except (IndexError, ValueError) as error:
            raise RecipeError(f"{override!r}: there is no element {key!r} in a list of {len(values)}.") from error
        if not isinstance(values, dict | list):
            raise RecipeError(f"{override!r}: {key!r} is a single value, so it has no keys below it.")
    return values


def _set(values: Any, key: str, value: Any, override: str) -> None:
    if isinstance(values, list):
        if not key.isdigit() or int(key) >= len(values):
            raise RecipeError(f"{override!r}: there is no element {key!r} in a list of {len(values)}.")
        values[int(key)] = value
    else:
        values[key] = value


def _unset(values: Any, key: str, override: str) -> None:
    if isinstance(values, list):
        raise RecipeError(f"{override!r}: an element of a list cannot be removed; give the whole list instead.")
    if key not in values:
        raise RecipeError(
            f"{override!r} removes a key that the recipe does not set. Omit this override; to set an empty text, "
            f"write {override}'\"\"'."
        )
    del values[key]
