"""`--scale tiny`: a recipe whose schedules keep their shape, and that runs end to end in seconds on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bertwright.core.dotted import overlap, value_at
from bertwright.core.overrides import override_key, set_key
from bertwright.recipe import Recipe
from bertwright.recipe_file import Written
from bertwright.scale.replacements import Replacement, scale_model, scale_phases, scale_text, scale_training


class Scaled(NamedTuple):
    """A recipe at a tiny scale."""

    recipe: Recipe
    replaced: list[str]
    """A line for each value that changed: the key, both values, the reason."""


def load_tiny(path: Path | str, overrides: Sequence[str] = ()) -> Scaled:
    """As `Recipe.load`, but with a tiny network, tiny batches and phases, and the built-in text.

    Precision, engine and kernels are replaced if this machine does not support them, and training starts from random
    weights. Values set by an override are kept. Raises `RecipeError` as `Recipe.load` does.
    """
    written = Written.read(path, overrides, Recipe)
    # Each section only by itself: what contradicts another one, or names a missing file, may be replaced below.
    checked = Recipe.from_values(written)
    overridden = [override_key(override) for override in overrides]
    shown = checked.to_json()
    replaced = []
    for key, value, reason in _replacements(checked, overridden):
        before, is_written = value_at(shown, key), value_at(written.values, key) is not None
        set_key(written.values, key, value, Recipe)
        # A key that is removed is a change only if the file has it; otherwise its default applied before, too.
        if is_written if value is None else before != value:
            now = "left out" if value is None else format_value(value)
            replaced.append(f"{key}: {format_value(before)} -> {now} ({reason})")
    recipe = Recipe.from_values(written)
    recipe.check(written.file, written.lines)
    return Scaled(recipe, replaced)


def _replacements(recipe: Recipe, overridden: Sequence[str]) -> Iterator[Replacement]:
    of_the_user = any(overlap(key, "corpus.source") for key in overridden)
    objective = recipe.train.objective
    labelled = objective.files.published if objective.files else None
    everything: list[Iterable[Replacement]] = [
        scale_text(recipe, of_the_user),
        scale_model(recipe),
        scale_phases(recipe.train.phases, labelled),
        scale_training(recipe),
    ]
    for replacements in everything:
        yield from (each for each in replacements if not any(overlap(key, each.key) for key in overridden))


def format_value(value: Any) -> str:
    """Return a value of a recipe for a line of text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict) and "kind" in value:
        return str(value["kind"])
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return ", ".join(str(item.get("path", item)) for item in value)
    return "nothing" if value in (None, "", [], {}) else str(value)
