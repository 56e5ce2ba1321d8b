"""What comes with the package: the recipes, known by their names, and the schemas that editors read."""

from __future__ import annotations

import difflib
from pathlib import Path

from bertwright.core.errors import RecipeError

FOLDER = Path(__file__).with_name("recipes")
RENAMED = {"classic-large": "nvidia-large"}
"""What recipes were called, and what they are called now: an old name is refused with the new one."""
SCHEMAS = ("recipe",)
"""Kinds of TOML files that have a JSON Schema."""


def shipped() -> dict[str, Path]:
    """The recipes by name, such as `demo`."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}


def titles() -> dict[str, str]:
    """What each recipe is for: the first line of its file."""
    return {name: path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ") for name, path in shipped().items()}


def schema_file(kind: str) -> Path:
    """Where the JSON Schema of such a file lies; `tools.schemas` writes it."""
    return Path(__file__).parent / "schemas" / f"{kind}.schema.json"


def find_recipe(recipe: Path | str) -> Path:
    """The file that a path or the name of a shipped recipe means; `RecipeError` where it is neither."""
    path, known = Path(recipe), shipped()
    # A file of the user's before ours, also where it is called `demo`.
    if path.is_file():
        return path
    if str(path) in known:
        return known[str(path)]
    if path.suffix == ".toml" and path.stem in known and not path.exists():
        raise RecipeError(
            f"there is no file {path}. That recipe comes with bertwright: give its name alone, {path.stem}."
        )
    if path.suffix or len(path.parts) != 1 or path.exists():
        return path  # reading it says what is wrong with it
    if new := RENAMED.get(path.name):
        raise RecipeError(f"the recipe {path} is called {new} now. Give that name.")
    near = difflib.get_close_matches(str(path), known, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"Give a TOML file, or one of {', '.join(known)}."
    raise RecipeError(f"{str(path)!r} is neither a file nor a recipe that comes with bertwright. {hint}")
