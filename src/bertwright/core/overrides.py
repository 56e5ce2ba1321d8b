"""Overrides of a recipe's values: `key=value` texts, single keys set in place, and presets.

A preset is a named set of keys in the recipe's file, which `preset` selects. It overrides the file's other values, and
the command line overrides both. The resolved recipe contains only the values, so a run does not record the name of its
preset.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from bertwright.core.config import by_kind
from bertwright.core.dotted import leaves
from bertwright.core.errors import RecipeError
from bertwright.core.section_fields import field_at, is_kind, members
from bertwright.core.validation_messages import YAML, nearest

_INDEX = re.compile(r"\[(\d+)\]")


def apply_overrides(values: dict[str, Any], overrides: Sequence[str], model: type[BaseModel]) -> None:
    """Set each `key=value` in the values of a `model`, in place; the value is read as TOML, or as a plain string if it
    is not valid TOML, or if the key takes only text: `corpus.language=nan` is a language, not a number.

    An empty value (`key=`) removes the key, so that its default applies. A key below the name of a kind
    (`precision.allow_slow` where `precision = "bf16"`) turns the name into a section of that kind.
    """
    for override in overrides:
        dotted, equals, text = override.partition("=")
        if not equals or not dotted or ":" in dotted:
            colon = YAML.match(override)
            example = f"{colon[1]}={colon[2]}" if colon else "key=value, for example train.phases.0.steps=100"
            raise RecipeError(f"{override!r} is not an override. Write {example}.")
        *above, last = override_key(override).split(".")
        if text:
            holder, value = _descend(values, above, override, model), _value(text)
            single = not isinstance(value, str | list | dict)
            _set(holder, last, text if single and _takes_text(model, [*above, last]) else value, override)
        else:
            _unset(_descend(values, above, override, model), last, override)


def set_key(values: dict[str, Any], dotted: str, value: Any, model: type[BaseModel]) -> None:
    """Set a dotted key in the values of a `model`, in place, as an override does; None removes the key if it exists."""
    *above, last = dotted.split(".")
    holder = _descend(values, above, dotted, model)
    if value is None and isinstance(holder, dict):
        holder.pop(last, None)
    else:
        _set(holder, last, value, dotted)


def override_key(override: str) -> str:
    """The dotted key of `key=value`; `phases[0]` becomes `phases.0`."""
    return _INDEX.sub(r".\1", override.partition("=")[0])


def _value(text: str) -> Any:
    try:
        # So that `model.size=mini` needs no quotes, which a shell would remove.
        read = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):  # not TOML, or a number with thousands of digits
        return text
    # What follows a line break would be other keys, which would be lost.
    return read["value"] if len(read) == 1 else text


def _descend(values: Any, keys: Sequence[str], override: str, model: type[BaseModel]) -> Any:
    """The table or list under `keys`; missing tables are created, and a name of a kind becomes a table."""
    for depth, key in enumerate(keys, 1):
        inner = values[_index(values, key, override)] if isinstance(values, list) else values.setdefault(key, {})
        if isinstance(inner, str) and _is_kind(model, keys[:depth], inner):
            _set(values, key, inner := by_kind(inner), override)
        if not isinstance(inner, dict | list):
            raise RecipeError(f"{override!r}: {key!r} is a single value, so it has no keys below it.")
        values = inner
    return values


def _is_kind(model: type[BaseModel], keys: Sequence[str], name: str) -> bool:
    """Whether `name` is a kind of the section at `keys`."""
    return is_kind(field_at(model, [int(key) if key.isdecimal() else key for key in keys])[2], name)


def _takes_text(model: type[BaseModel], keys: Sequence[str]) -> bool:
    """Whether the value at `keys` is a text or a path, and nothing else."""
    field = field_at(model, [int(key) if key.isdecimal() else key for key in keys])[2]
    kinds = [kind for kind in members(field.annotation) if kind is not type(None)] if field else []
    return bool(kinds) and all(kind in (str, Path) for kind in kinds)


def _set(values: Any, key: str, value: Any, override: str) -> None:
    values[_index(values, key, override) if isinstance(values, list) else key] = value


def _index(values: list[Any], key: str, override: str) -> int:
    """The index of the element `key` of a list, counted from 0."""
    if key not in map(str, range(len(values))):
        raise RecipeError(f"{override!r}: there is no element {key!r} in a list of {len(values)}.")
    return int(key)


def _unset(values: Any, key: str, override: str) -> None:
    if isinstance(values, list):
        raise RecipeError(f"{override!r}: an element of a list cannot be removed; give the whole list instead.")
    if key not in values:
        raise RecipeError(
            f"{override!r} removes a key that the recipe does not set. Omit this override; to set an empty text, "
            f"write {override}'\"\"'."
        )
    del values[key]


def apply_preset(
    values: dict[str, Any], lines: dict[str, int], overrides: Sequence[str], file: str, model: type[BaseModel]
) -> list[str]:
    """Merge the chosen preset into the `values` of a `model` and remove the presets; returns the other overrides.

    `lines` maps each merged key to its line in the preset. `RecipeError` for an unknown or malformed preset.
    """
    presets, name = values.pop("presets", {}), values.pop("preset", "")
    rest = []
    for override in overrides:
        key, equals, text = override.partition("=")
        if key == "preset" and equals:
            name = text.strip("'\"")
        else:
            rest.append(override)
    if not isinstance(presets, dict) or not all(isinstance(keys, dict) for keys in presets.values()):
        raise RecipeError(
            f"{file}: presets: must be a table of tables; write [presets.NAME] before the keys of each preset."
        )
    if not isinstance(name, str):
        raise RecipeError(f"{file}: preset: must be the name of a preset in quotes; got {name!r}.")
    if not name:
        return rest
    if name not in presets:
        has = f"the file has {', '.join(presets)}" if presets else "the file has none"
        raise RecipeError(f"{file}: preset: there is no preset {name!r}; {nearest(name, list(presets)) or has}.")
    for key, value in leaves(presets[name], whole_lists=True):
        set_key(values, key, value, model)
        lines[key] = lines.get(f"presets.{name}.{key}", -1)
    return rest
