"""What is to be run: a recipe in full, and the commands that its stages are."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from bertwright.core.errors import RecipeError
from bertwright.core.redact import has_credentials, redact_credentials
from bertwright.recipe import Recipe, Written

FOLDER = "launch"
"""Below the run folder: the recipe, the other files of the description, and logs."""
RECIPE = "recipe.toml"


@dataclass(frozen=True)
class Job:
    """A run somewhere else."""

    values: Mapping[str, Any]
    """The recipe, overrides applied; paths stand as its user wrote them, so `~` is the home folder over there."""
    out: PurePosixPath
    """The run folder, as the place sees it."""
    has_corpus: bool
    """Whether the recipe makes a corpus."""

    @property
    def name(self) -> str:
        """Of the run: the name of its folder."""
        return self.out.name

    @property
    def folder(self) -> PurePosixPath:
        """Where the files of the description lie, as the place sees it."""
        return self.out / FOLDER

    @property
    def recipe(self) -> str:
        """The recipe in full, as TOML."""
        import tomli_w  # a recipe that is only checked needs none

        return tomli_w.dumps(self.values)

    def command(self, verb: str, *options: str) -> list[str]:
        """The words after `bertwright` that do `verb`."""
        return [verb, str(self.folder / RECIPE), "--out", str(self.out), *options]

    def line(self, verb: str, *options: str) -> str:
        """The whole command, as a shell reads it."""
        return shlex.join(["bertwright", *self.command(verb, *options)])


def load_job(recipe: Path, overrides: Sequence[str], out: Path | None) -> Job:
    """The job of a recipe; `RecipeError` where the recipe is wrong or holds a password."""
    # Not what training starts from: it may lie at the place alone.
    loaded = Recipe.load(recipe, overrides, given=False)
    values = Written.read(recipe, overrides).values
    for key, text in _texts(values, ""):
        # A description is printed, kept with the run, and shown by schedulers to others.
        if has_credentials(text) or redact_credentials(text) != text:
            raise RecipeError(
                f"{key} is an address with a password, a token or a query, and descriptions of jobs hold no secrets. "
                "Give the address without it, and the credentials in the environment of the place."
            )
    folder = PurePosixPath((out or Path("runs") / recipe.stem).as_posix())
    return Job(values, folder, loaded.corpus is not None)


def _texts(value: Any, key: str) -> Iterator[tuple[str, str]]:
    """Every text in TOML values, with its dotted key."""
    if isinstance(value, dict | list):
        for name, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(child, f"{key}.{name}" if key else str(name))
    elif isinstance(value, str):
        yield key, value
