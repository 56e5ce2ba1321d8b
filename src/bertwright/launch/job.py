"""What is to be run: a recipe in full, and the commands that its stages are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path, PurePosixPath
from typing import Any

from bertwright.core.errors import RecipeError
from bertwright.core.redact import is_url
from bertwright.launch.secrets import has_address, texts
from bertwright.needs import ASKING, needs
from bertwright.recipe import Recipe, Written

FOLDER = "launch"
"""Below the run folder: the recipe, the other files of the description, and logs."""
RECIPE = "recipe.toml"
_READ = re.compile(
    r"corpus\.source(\.\d+)?(\.path)?|corpus\.(\w+\.)?templates|corpus\.contamination\.\d+|vocab\.file|model\.config"
    r"|(\w+\.)*teacher|train\.init_from|train\.phases\.\d+\.data"
)
"""Keys of a recipe that name files."""
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
        named = {key: text for key, text in texts(self.values) if _READ.fullmatch(key)}
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
    """The job of a recipe; `RecipeError` where the recipe is wrong or holds a password."""
    written = Written.read(recipe, overrides)
    loaded = written.validated()
    # Not what training starts from: it may lie at the place alone.
    loaded.check(written.file, written.lines, given=False)
    for key, text in texts(written.values):
        # A description is printed, kept with the run, and shown by schedulers to others.
        if has_address(text):
            raise RecipeError(
                f"{key} is an address with a password, a token or a query, and descriptions of jobs hold no secrets. "
                "Give the address without it, and the credentials in the environment of the place."
            )
    return Job(written, loaded, PurePosixPath((out or Path("runs") / recipe.stem).as_posix()))


def listed(files: Mapping[str, str]) -> str:
    """Files of `Job.files` as a note names them."""
    return ", ".join(f"{key} = {path}" for key, path in files.items())
