"""What is to be run: a recipe in full, and the commands that its stages are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from bertwright.core.errors import RecipeError
from bertwright.core.redact import is_url
from bertwright.launch.secrets import has_address, texts
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

    @property
    def files(self) -> dict[str, str]:
        """The files and folders that the recipe reads, by their keys; addresses are none."""
        named = {key: text for key, text in texts(self.values) if _READ.fullmatch(key)}
        return {key: text for key, text in named.items() if not is_url(text) and text not in _SHIPPED}

    def require_relative_out(self, why: str) -> None:
        """`RecipeError`, whose reason is `why`, for a run folder that is not below the one where the place begins."""
        if self.out.is_absolute() or ".." in self.out.parts:
            raise RecipeError(f"--out {self.out}: {why}. Give a relative name, such as runs/{self.name}.")

    def command(self, verb: str, *options: str, at: PurePosixPath | None = None) -> list[str]:
        """The words after `bertwright` that do `verb`; `at` is the folder of the recipe, where it is not `folder`."""
        return [verb, str((at or self.folder) / RECIPE), "--out", str(self.out), *options]

    def line(self, verb: str, *options: str) -> str:
        """The whole command, as a shell reads it."""
        return shlex.join(["bertwright", *self.command(verb, *options)])


def load_job(recipe: Path, overrides: Sequence[str], out: Path | None) -> Job:
    """The job of a recipe; `RecipeError` where the recipe is wrong or holds a password."""
    # Not what training starts from: it may lie at the place alone.
    loaded = Recipe.load(recipe, overrides, given=False)
    values = Written.read(recipe, overrides).values
    for key, text in texts(values):
        # A description is printed, kept with the run, and shown by schedulers to others.
        if has_address(text):
            raise RecipeError(
                f"{key} is an address with a password, a token or a query, and descriptions of jobs hold no secrets. "
                "Give the address without it, and the credentials in the environment of the place."
            )
    folder = PurePosixPath((out or Path("runs") / recipe.stem).as_posix())
    return Job(values, folder, loaded.corpus is not None)


def listed(files: Mapping[str, str]) -> str:
    """Files of `Job.files` as a note names them."""
    return ", ".join(f"{key} = {path}" for key, path in files.items())
