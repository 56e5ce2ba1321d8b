"""Files that come with the package: recipes and places, found by name, and the JSON Schemas that editors read."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Literal

from bertwright.core.errors import RecipeError

Noun = Literal["recipe", "place"]
RUN_RECIPE = "recipe.toml"
"""The recipe in a run folder."""
SCHEMAS = ("recipe", "place")
"""Kinds of TOML files that have a JSON Schema."""


def shipped(noun: Noun = "recipe") -> dict[str, Path]:
    """The recipes, or places, by name, such as `demo`."""
    folder = Path(__file__).with_name(f"{noun}s")
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def titles(noun: Noun = "recipe") -> dict[str, str]:
    """What each recipe, or place, is for, by name: the first line of its file."""
    files = shipped(noun)
    return {name: path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ") for name, path in files.items()}


def schema_file(kind: str) -> Path:
    """The path of the JSON Schema for this kind of file; `tools.schemas` writes it."""
    return Path(__file__).parent / "schemas" / f"{kind}.schema.json"


def find_recipe(recipe: Path | str) -> Path:
    """`find_shipped` for a recipe; a run folder stands for its own recipe."""
    return Path(recipe) / RUN_RECIPE if is_run_folder(recipe) else find_shipped("recipe", recipe)


def is_run_folder(path: Path | str) -> bool:
    """Whether this is a folder of a run, which has its recipe; not just any folder, whose name may be a recipe's."""
    return (Path(path) / RUN_RECIPE).is_file()


def default_run_folder(recipe: Path | str) -> Path:
    """The run folder of a recipe for which none is named: a run folder is its own, any other recipe has runs/NAME."""
    return Path(recipe) if is_run_folder(recipe) else Path("runs") / Path(recipe).stem


def find_shipped(noun: Noun, word: Path | str) -> Path:
    """The file for a path or the name of a shipped recipe, or place; `RecipeError` if it is neither."""
    path, known = Path(word), shipped(noun)
    # The user's file takes precedence over ours, even if it is called `demo`.
    if path.is_file():
        return path
    if str(path) in known:
        return known[str(path)]
    if path.suffix == ".toml" and path.stem in known and not path.exists():
        raise RecipeError(
            f"there is no file {path}. That {noun} comes with bertwright: give only its name, {path.stem}."
        )
    if path.suffix or len(path.parts) != 1 or path.exists():
        return path  # reading it reports what is wrong with it
    near = difflib.get_close_matches(str(path), known, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"Give a TOML file, or one of {', '.join(known)}."
    raise RecipeError(f"{str(path)!r} is neither a file nor a {noun} that comes with bertwright. {hint}")
