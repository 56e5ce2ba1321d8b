"""TOML into a frozen model, with errors that name the line, the key and the nearest right one.

All independent mistakes are reported at once, each as `file:line: key: what is wrong`.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from bertwright.core.errors import RecipeError

_HEADER = re.compile(r"^\s*(\[\[?)\s*([A-Za-z0-9_.\-\s\"']+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*([A-Za-z0-9_.\-\"']+)\s*=")


def read_toml(path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """The values of a TOML file and the line of each dotted key that stands at the start of a line."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"cannot read the recipe {path}: {error}. Give the path of a TOML file in UTF-8.") from error
    try:
        return tomllib.loads(text), _lines(text)
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"{path}: not valid TOML: {error}. Mend the line named there.") from error


def apply_overrides(values: dict[str, Any], overrides: Sequence[str]) -> None:
    """Set each `key=value` in place; the value is read as TOML, or as a plain string if it is none.

    An empty value (`key=`) takes the key out, so that its default applies.
    """
    for override in overrides:
        dotted, equals, text = override.partition("=")
        if not equals or not dotted:
            raise RecipeError(
                f"{override!r} is not an override. Write key=value, for example train.phases.0.steps=100."
            )
        *above, last = dotted.split(".")
        if text:
            _set(_descend(values, above, override), last, _value(text), override)
        else:
            _unset(_descend(values, above, override), last, override)


def validate(model: type[BaseModel], values: Mapping[str, Any], file: str, lines: Mapping[str, int]) -> Any:
    """`model` made of `values`, or one `RecipeError` that lists every mistake."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise RecipeError(mistakes(model, error, file, lines)) from error


def mistakes(model: type[BaseModel], error: ValidationError, file: str, lines: Mapping[str, int]) -> str:
    """A line for each mistake in the values of a `model`: where it stands, the key, what is wrong, what is right."""
    details = error.errors(include_url=False)
    # A list whose elements are wrong is also reported as too short; the elements say it better.
    inner = [d["loc"][:n] for d in details for n in range(len(d["loc"]))]
    details = [d for d in details if d["type"] != "too_short" or d["loc"] not in inner]
    return "\n".join(_mistake(model, detail, file, lines) for detail in details)


def place(dotted: str, file: str, lines: Mapping[str, int]) -> str:
    """`file:line` of a dotted key, or of the nearest key above it that has a line; line 0 is the command line.

    What is wrong with a whole section is the fault of the command line where that changed a key of it.
    """
    if any(line == 0 and key.startswith(f"{dotted}.") for key, line in lines.items()):
        return "command line"
    parts = dotted.split(".")
    while parts and ".".join(parts) not in lines:
        parts.pop()
    line = lines.get(".".join(parts), -1)
    return "command line" if line == 0 else f"{file}:{line}" if line > 0 else file


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
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _descend(values: Any, keys: Sequence[str], override: str) -> Any:
    """The table or list under `keys`; tables that are missing are made."""
    for key in keys:
        try:
            values = values[int(key)] if isinstance(values, list) else values.setdefault(key, {})
        except (IndexError, ValueError) as error:
            raise RecipeError(f"{override!r}: there is no element {key!r} in a list of {len(values)}.") from error
        if not isinstance(values, dict | list):
            raise RecipeError(f"{override!r}: {key!r} is a single value, so nothing lies below it.")
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
        raise RecipeError(f"{override!r}: an element of a list cannot be taken out; write the whole list anew.")
    if key not in values:
        raise RecipeError(
            f"{override!r} takes a key out, but the recipe does not set it. Leave this out; an empty text is "
            f"written {override}'\"\"'."
        )
    del values[key]


def _mistake(model: type[BaseModel], detail: Any, file: str, lines: Mapping[str, int]) -> str:
    keys, known = _resolve(model, detail["loc"])
    dotted = ".".join(keys)
    where = place(dotted, file, lines)
    if detail["type"] == "extra_forbidden":
        near = difflib.get_close_matches(keys[-1], known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"the keys here are {', '.join(known)}."
        return f"{where}: {dotted}: unknown key {keys[-1]!r}; {hint}"
    if detail["type"] == "missing":
        return f"{where}: {dotted}: this key is required."
    message = detail["msg"].removeprefix("Value error, ")
    value = detail["input"]
    shown = f" (got {value!r})" if isinstance(value, str | int | float | bool) else ""
    return f"{where}: {dotted or 'recipe'}: {message}{shown}"


def _resolve(model: Any, loc: Sequence[int | str]) -> tuple[list[str], list[str]]:
    """The dotted keys of a pydantic location without union tags, and the keys allowed where it ends."""
    keys: list[str] = []
    choices: list[Any] = [model]
    known: list[str] = []
    for part in loc:
        if isinstance(part, int):  # an element of a list: the choices stay the same
            keys.append(str(part))
            continue
        models = [c for c in choices if isinstance(c, type) and issubclass(c, BaseModel)]
        tagged = [m for m in models if (f := m.model_fields.get("kind")) is not None and part in get_args(f.annotation)]
        if tagged and part not in models[0].model_fields:
            choices = tagged
            continue
        known = sorted({name for m in models for name in m.model_fields})
        if not models:
            continue  # the name of a union member, which no user wrote
        keys.append(part)
        choices = [a for m in models if (f := m.model_fields.get(part)) for a in members(f.annotation)]
    return keys, known


def members(annotation: Any) -> list[Any]:
    """The classes inside unions, tuples, lists and Annotated types."""
    if get_origin(annotation) in (Union, UnionType, tuple, list, dict) or hasattr(annotation, "__metadata__"):
        return [m for a in get_args(annotation) for m in members(a)]
    return [annotation]
