"""Presets of a recipe: named sets of keys in its file, one of which `preset` selects.

A preset overrides the file's other values, and the command line overrides both. The resolved recipe contains only the
values, so a run does not record the name of its preset.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from bertwright.core.dotted import leaves
from bertwright.core.errors import RecipeError
from bertwright.core.mistakes import nearest
from bertwright.core.overrides import set_key


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
