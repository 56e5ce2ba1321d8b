"""What is to be run: a recipe in full, and the commands that its stages are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel

from bertwright.core.config import role
from bertwright.core.errors import RecipeError
from bertwright.core.redact import is_url
from bertwright.launch.secrets import secrets, texts
from bertwright.needs import ASKING, needs
from bertwright.recipe import Recipe
from bertwright.recipe_file import Written

FOLDER = "launch"
"""Below the run folder: the recipe, the other files of the description, and logs."""
RECIPE = "recipe.toml"
_SOURCE = re.compile(r"corpus\.source(\.\d+)?(\.path)?")
"""The forms of the key whose files are told by their own sizes and samples, not by a hash of all."""
_SHIPPED = ("sample", "sample-small")
"""Sources that come with the package."""


@dataclass(frozen=True)
class Job:
    """A run somewhere else."""

    written: Written
    """The recipe as its user wrote it, overrides applied."""
    loaded: Recipe
    """The recipe as it is understood here."""
    out: PurePosixPath
    """The run folder, as the place sees it."""

    @property
    def values(self) -> Mapping[str, Any]:
        """The recipe's values; paths stand as its user wrote them, so `~` is the home folder over there."""
        return self.written.values

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

    @property
    def files(self) -> dict[str, str]:
        """The files and folders that the recipe reads, by their keys; addresses are none."""
        marked = set(_marked(self.loaded))
        named = {
            key: text
            for key, text in texts(self.values)
            # An element of a list stands below its key.
            if _SOURCE.fullmatch(key) or not marked.isdisjoint((key, key.rpartition(".")[0]))
        }
        return {key: text for key, text in named.items() if not is_url(text) and text not in _SHIPPED}

    @property
    def extras(self) -> set[str]:
        """The extras of bertwright that the stages of the recipe ask for."""
        return {need.extra for need in needs(self.loaded, ASKING)}

    def require_relative_out(self, why: str) -> None:
        """`RecipeError`, whose reason is `why`, for a run folder that is not below the one where the place begins."""
        if self.out.is_absolute() or ".." in self.out.parts:
            raise RecipeError(f"--out {self.out}: {why}. Give a relative name, such as runs/{self.name}.")

    def check_ranks(self, factors: Mapping[str, int]) -> None:
        """`RecipeError` where the recipe cannot be trained by so many ranks: the product of these numbers of the place,
        by what its user calls them."""
        try:
            self.loaded.check(self.written.file, self.written.lines, ranks=prod(factors.values()), given=False)
        except RecipeError as error:
            product = " x ".join(f"{name} = {number:,}" for name, number in factors.items())
            raise RecipeError(f"{error}\nThe place has {product}. Change it, or the recipe.") from None

    def command(self, verb: str, *options: str, at: PurePosixPath | None = None) -> list[str]:
        """The words after `bertwright` that do `verb`; `at` is the folder of the recipe, where it is not `folder`."""
        return [verb, str((at or self.folder) / RECIPE), "--out", str(self.out), *options]

    def line(self, verb: str, *options: str) -> str:
        """The whole command, as a shell reads it."""
        return shlex.join(["bertwright", *self.command(verb, *options)])


def load_job(recipe: Path, overrides: Sequence[str], out: Path | None) -> Job:
    """The job of a recipe; `RecipeError` where the recipe is wrong or holds a secret."""
    written = Written.read(recipe, overrides)
    loaded = Recipe.validated(written)
    # Not what training starts from: it may lie at the place alone.
    loaded.check(written.file, written.lines, given=False)
    # A description is printed, kept with the run, and shown by schedulers to others.
    for key, secret in secrets(written.values):
        raise RecipeError(
            f"{key} holds {secret}, and descriptions of jobs hold no secrets. Take it out, and give the credentials in "
            "the environment of the place."
        )
    return Job(written, loaded, PurePosixPath((out or Path("runs") / recipe.stem).as_posix()))


def _marked(value: Any, key: str = "") -> Iterator[str]:
    """The dotted keys of a section, or of sections in a list, whose fields name files."""
    if isinstance(value, BaseModel):
        for name, field in type(value).model_fields.items():
            below = f"{key}.{name}".lstrip(".")
            if role(field) == "known_by_content":
                yield below
            yield from _marked(getattr(value, name), below)
    elif isinstance(value, tuple):
        for number, element in enumerate(value):
            yield from _marked(element, f"{key}.{number}")


def listed(files: Mapping[str, str]) -> str:
    """Files of `Job.files` as a note names them."""
    return ", ".join(f"{key} = {path}" for key, path in files.items())
