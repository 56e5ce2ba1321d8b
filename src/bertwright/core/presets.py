"""Presets of a recipe: named sets of keys in its file, of which `preset` chooses one.

They take the place of the file's other values, and what is said on the command line wins over both. The resolved recipe
has the values alone, so a run does not know by which name they were chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bertwright.core.errors import RecipeError
from bertwright.core.mistakes import nearest
from bertwright.core.toml import set_key


def apply_preset(values: dict[str, Any], lines: dict[str, int], overrides: Sequence[str], file: str) -> list[str]:
    """Put the chosen preset's keys into `values`, where presets are no more; returns the other overrides.

    A key of a preset stands in `lines` where the preset says it. `RecipeError` for a name that no preset has.
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
        raise RecipeError(f"{file}: presets: is a table of tables; write [presets.NAME] before the keys of each.")
    if not name:
        return rest
    if name not in presets:
        has = f"it has {', '.join(presets)}" if presets else "it has none"
        raise RecipeError(f"{file}: preset: there is no preset {name!r}; {nearest(str(name), list(presets)) or has}.")
    for key, value in _leaves(presets[name], ""):
        set_key(values, key, value)
        lines[key] = lines.get(f"presets.{name}.{key}", -1)
    return rest


def _leaves(table: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
