"""What a shell completes: recipes, run folders, places, targets, stages, tasks, formats, keys and their values.

Files are not completed here: shells do that by themselves where nothing fits.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer

from bertwright.shipped import Noun, is_run_folder, titles

Found = list[tuple[str, str]]
"""What fits, each with a line of help."""


def complete_recipe(incomplete: str) -> Found:
    """Recipes by name, those in this folder, and run folders here and in runs/."""
    runs = [
        path.as_posix() for folder in ("", "runs") for path in sorted(Path(folder).glob("*")) if is_run_folder(path)
    ]
    return [*_complete_shipped("recipe", incomplete), *_matches(((run, "a run folder") for run in runs), incomplete)]


def complete_place(incomplete: str) -> Found:
    """Places by name, and those in this folder."""
    return _complete_shipped("place", incomplete)


def complete_target(incomplete: str) -> Found:
    """The targets of `launch`."""
    from bertwright.launch.config import TARGETS

    return _matches(((kind, "") for kind in TARGETS), incomplete)


def complete_stage(incomplete: str) -> Found:
    """The stages."""
    from bertwright.pipeline.stage import STAGES

    return _matches(((name, stage.about) for name, stage in STAGES.items()), incomplete)


def complete_task(incomplete: str) -> Found:
    """The tasks of `finetune`."""
    from bertwright.finetune.tasks import TASKS

    return _matches(((name, "") for name in TASKS), incomplete)


def complete_format(incomplete: str) -> Found:
    """The formats that `convert` writes."""
    from bertwright.formats.format import Kind

    return _matches(((kind, "") for kind in (*get_args(Kind), "megatron", "page")), incomplete)


def complete_key(incomplete: str) -> Found:
    """Keys of a recipe."""
    return _matches(_keys(), incomplete)


def complete_override(ctx: typer.Context, incomplete: str) -> Found:
    """KEY= or, after the equals sign, the values that a key may have."""
    recipe = str(ctx.params.get("recipe") or "")
    args = list(map(str, ctx.params.get("overrides") or ctx.params.get("others") or ()))
    # bash parts words at "=": `engine=d` arrives as three words, and what follows the sign is completed alone. A sign
    # at the end is no word for click, so read it where bash put it.
    at_sign = not incomplete and os.environ.get("COMP_WORDS", "").rstrip().endswith(" =")
    before = args[-1:] if at_sign else args[-2:-1] if args[-1:] == ["="] else []
    if before:
        return _matches(_values(before[0], recipe), incomplete)
    key, equals, value = incomplete.partition("=")
    if equals:
        return [(f"{key}={name}", about) for name, about in _matches(_values(key, recipe), value)]
    return _matches(((f"{name}=", about) for name, about in _keys()), incomplete)


def _keys() -> Iterator[tuple[str, str]]:
    from bertwright.explain import keys_of
    from bertwright.recipe import Recipe

    return keys_of(Recipe)


def _values(key: str, recipe: str) -> Iterable[tuple[str, str]]:
    """The values of a key that has a choice, such as the kinds of a section; those of `preset` are the recipe's."""
    from bertwright.explain import fields_of
    from bertwright.recipe import Recipe

    if key == "preset":
        return [(name, "") for name in _presets(recipe)]
    names: dict[str, None] = {}
    for annotation in _alternatives([field.annotation for field in fields_of(Recipe, key)]):
        if annotation is bool:
            names |= dict.fromkeys(("true", "false"))
        elif get_origin(annotation) is Literal:
            names |= dict.fromkeys(map(str, get_args(annotation)))
        elif "kind" in (sections := getattr(annotation, "model_fields", {})):
            names[sections["kind"].default] = None
    return [(name, "") for name in names]


def _alternatives(annotations: Iterable[Any]) -> Iterator[Any]:
    """The types inside unions, lists and annotations."""
    for annotation in annotations:
        if get_origin(annotation) is Literal or not get_args(annotation):
            yield annotation
        else:
            yield from _alternatives(get_args(annotation))


def _presets(recipe: str) -> list[str]:
    """The presets of a recipe; none if there is no such recipe."""
    from bertwright.core.errors import BertwrightError
    from bertwright.core.toml import read_toml
    from bertwright.shipped import find_recipe

    try:
        return list(read_toml(find_recipe(recipe))[0].get("presets", {}))
    except (BertwrightError, OSError):
        return []


def _complete_shipped(noun: Noun, incomplete: str) -> Found:
    here = ((path.name, f"a {noun} or another file of TOML in this folder") for path in sorted(Path().glob("*.toml")))
    return [*_matches(titles(noun).items(), incomplete), *_matches(here, incomplete)]


def _matches(names: Iterable[tuple[str, str]], incomplete: str) -> Found:
    return [(name, about) for name, about in names if name.startswith(incomplete)]
