"""What several verbs share: their arguments and options, the refusal of useless ones, the recipe and its folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from bertwright.core.errors import RecipeError
from bertwright.pipeline.run_folder import RunFolder
from bertwright.recipe import Recipe


def _folder(text: str) -> Path:
    # A variable that is not set gives an empty text in a script, and Path("") is the working folder.
    if not text.strip():
        raise RecipeError(
            "--out is empty. Give the path of a folder, or leave --out away for the one that --help names."
        )
    return Path(text).expanduser()


RecipePath = Annotated[
    Path, typer.Argument(metavar="RECIPE", help="A TOML recipe, or the name of one that `bertwright recipes` lists.")
]
MaybeRecipe = Annotated[Path | None, typer.Argument(metavar="[RECIPE]", help="A TOML recipe, or a listed name.")]
Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Overrides, e.g. train.phases.0.steps=100.")
]
_RUN_FOLDER = "The run folder; without it runs/<name of the recipe>"


def _out(help: str) -> Any:
    return typer.Option("--out", parser=_folder, metavar="DIR", help=f"{help}.")


Out = Annotated[Path | None, _out(_RUN_FOLDER)]
OutOrPage = Annotated[Path | None, _out(f"{_RUN_FOLDER}. Of several runs: where comparison.html is put; else here")]
OutOrDownload = Annotated[Path | None, _out(f"{_RUN_FOLDER}. With --download: where the file is put; else downloads")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
Scale = Annotated[
    str, typer.Option("--scale", metavar="tiny", help="The built-in text, a tiny network, a few steps: all in seconds.")
]


@dataclass(frozen=True)
class Run:
    """What is to be run: options that verbs take together (`cli.grouped`)."""

    recipe: RecipePath
    overrides: Overrides = None
    out: Out = None


@dataclass(frozen=True)
class MaybeRun:
    """What is to be run, which a download goes without."""

    recipe: MaybeRecipe = None
    overrides: Overrides = None
    out: OutOrDownload = None


def refuse_useless(where: str, options: dict[str, bool]) -> None:
    """Raise `RecipeError` if one of these options, which would do nothing there, is given."""
    for option, given in options.items():
        if given:
            raise RecipeError(f"{option} {where} would do nothing. Leave it out.")


def load_recipe(path: Path, overrides: list[str] | None, out: Path | None) -> tuple[Recipe, Path]:
    """The recipe and its run folder; what training starts from need not be there any more once the run has begun."""
    folder = out or Path("runs") / path.stem
    return Recipe.load(path, overrides or [], given=not RunFolder(folder).begun), folder


def load_at_scale(
    path: Path, overrides: list[str] | None, out: Path | None, scale: str
) -> tuple[Recipe, Path, list[str]]:
    """As `load_recipe`, and a line for each value that `--scale` replaces; the run folder is then another one."""
    if not scale:
        return (*load_recipe(path, overrides, out), [])
    if scale != "tiny":
        raise RecipeError(f"--scale {scale}: the one scale there is is tiny. Write --scale tiny, or leave it out.")
    from bertwright.scale.tiny import load_tiny  # asks the machine, which other starts do not need

    scaled = load_tiny(path, overrides or [])
    return scaled.recipe, out or Path("runs") / f"{path.stem}-tiny", scaled.replaced


def run_folders(first: Path, others: list[str]) -> list[Path]:
    """Run folders to be compared, as they were typed; `RecipeError` where one of them is none."""
    for word in others:
        if not Path(word).is_dir():
            raise RecipeError(
                f"{first} is a run folder, so run folders are compared, and {word!r} is none. Give folders only."
            )
    if not others:
        raise RecipeError(
            f"{first} is a run folder, and one alone cannot be compared. Give its recipe, or another run folder."
        )
    return [first, *map(Path, others)]
