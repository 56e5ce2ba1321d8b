"""A job to run: a complete recipe, the commands of its stages, and what a place must know of its files and secrets."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path, PurePosixPath
from typing import Any

import tomli_w
from pydantic import BaseModel

from bertwright.check.recipe.packages import ASKING, optional_packages
from bertwright.core.addresses import is_url
from bertwright.core.config import role
from bertwright.core.dotted import child_key, texts
from bertwright.core.errors import RecipeError
from bertwright.core.secrets import secret_in, secrets_in_words
from bertwright.recipe import Recipe
from bertwright.recipe_file import Written
from bertwright.shipped import default_run_folder

FOLDER = "launch"
"""Folder below the run folder for the recipe, the other files of the description, and logs."""
RECIPE = "recipe.toml"
_SOURCE = re.compile(r"corpus\.source(\.\d+)?(\.path)?")
"""Forms of the key whose files are identified by size and samples instead of a hash of their full content."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_READ_FOR = {
    "vocab.file": "whether the network has a row for each entry of the vocabulary",
    "model.config": "whether the network fits the vocabulary, the lengths, the attention kernel and the optimizer",
}
"""What the check of a recipe reads a file for, by key."""
_SHIPPED = ("sample", "sample-small")
"""Sources that are shipped with the package."""


@dataclass(frozen=True)
class Job:
    """A run at a place."""

    written: Written
    """The recipe as the user wrote it, with overrides applied."""
    loaded: Recipe
    """The recipe as validated on this machine."""
    out: PurePosixPath
    """The run folder, as the place sees it."""

    @property
    def values(self) -> Mapping[str, Any]:
        """The recipe's values; paths stay as the user wrote them, so `~` is the home folder at the place."""
        return self.written.values

    @property
    def name(self) -> str:
        """Name of the run, which is the name of its folder."""
        return self.out.name

    @property
    def folder(self) -> PurePosixPath:
        """Folder of the description's files, as the place sees it."""
        return self.out / FOLDER

    @property
    def recipe(self) -> str:
        """The complete recipe, as TOML."""
        return tomli_w.dumps(self.values)

    @property
    def files(self) -> dict[str, str]:
        """Files and folders that the recipe reads, by key; URLs are excluded."""
        marked = set(_keys_of_files(self.loaded))
        named = {
            key: text
            for key, text in texts(self.values)
            # A list element is listed under the list's key.
            if _SOURCE.fullmatch(key) or not marked.isdisjoint((key, key.rpartition(".")[0]))
        }
        return {key: text for key, text in named.items() if not is_url(text) and text not in _SHIPPED}

    @property
    def extras(self) -> set[str]:
        """Extras of bertwright that the recipe's stages need."""
        return {need.extra for need in optional_packages(self.loaded, ASKING)}

    @property
    def unchecked(self) -> str:
        """A note on the checks of the recipe that were left out, because files are not here; "" if there are none."""
        notes = [
            f"{key} = {path} is not on this machine, so it was not checked {_READ_FOR[key]}"
            for key, path in files_elsewhere(self.loaded).items()
        ]
        return f"{'; '.join(notes)}. The run checks this first." if notes else ""

    def require_relative_out(self, why: str) -> None:
        """Raise `RecipeError`, giving `why` as the reason, unless the run folder is below the place's start folder."""
        if self.out.is_absolute() or ".." in self.out.parts:
            raise RecipeError(f"--out {self.out}: {why}. Give a relative path, such as runs/{self.name}.")

    def check_ranks(self, factors: Mapping[str, int]) -> None:
        """Raise `RecipeError` if the recipe cannot train with this many ranks: the product of `factors`, the place's
        numbers keyed by the names its users know."""
        try:
            _check(self.written, self.loaded, ranks=prod(factors.values()))
        except RecipeError as error:
            product = " x ".join(f"{name} = {number:,}" for name, number in factors.items())
            raise RecipeError(f"{error}\nThe place has {product}. Change the place or the recipe.") from None

    def command(self, verb: str, *options: str, at: PurePosixPath | None = None) -> list[str]:
        """Return the words after `bertwright` that run `verb`; `at` is the recipe's folder if it is not `folder`."""
        return [verb, str((at or self.folder) / RECIPE), "--out", str(self.out), *options]

    def line(self, verb: str, *options: str) -> str:
        """Return the complete command, quoted for a shell."""
        return shlex.join(["bertwright", *self.command(verb, *options)])


def load_job(
    recipe: Path, overrides: Sequence[str], out: Path | None, of_place: Sequence[str] = (), place: str = ""
) -> Job:
    """Return the job of a recipe with the overrides of the place `of_place`, followed by those of the user.

    Raises `RecipeError` if the recipe is invalid or contains a secret, or if the run folder has a control character in
    its name.
    """
    try:
        written, loaded = _load(recipe, [*of_place, *overrides])
    except RecipeError:
        _check_overrides(recipe, of_place, place)
        raise
    folder = (out or default_run_folder(recipe)).as_posix()
    # Scripts name the run in comments and options, which a line break would end.
    if _CONTROL.search(folder):
        raise RecipeError(f"--out {folder!r}: a line break or control character is in it. Give a name without one.")
    return Job(written, loaded, PurePosixPath(folder))


def _load(recipe: Path, overrides: Sequence[str]) -> tuple[Written, Recipe]:
    written = Written.read(recipe, overrides, Recipe)
    # A description is printed, kept with the run, and shown to others by schedulers.
    remedy = "Remove it, and set the credentials in the environment of the place."
    refuse_secrets(written.values, written.file, written.lines, remedy)
    loaded = Recipe.from_values(written)
    _check(written, loaded)
    return written, loaded


def _check(written: Written, loaded: Recipe, ranks: int = 1) -> None:
    """Raise `RecipeError` for contradictions in the recipe; files that may exist only at the place are not read."""
    loaded.check(written.file, written.lines, ranks=ranks, given=False, unread=files_elsewhere(loaded))


def files_elsewhere(recipe: Recipe) -> dict[str, Path]:
    """Return the files that the check of a recipe reads and this machine does not have, by key.

    Only absolute paths may be those of another machine: a relative path that is not here is a mistake.
    """
    named = {"vocab.file": recipe.vocab.file, "model.config": recipe.model.config}
    return {key: path for key, path in named.items() if path and path.is_absolute() and not os.path.exists(path)}


def _check_overrides(recipe: Path, overrides: Sequence[str], place: str) -> None:
    """Raise `RecipeError` if the recipe is valid, but not with the overrides of the place: the user typed others."""
    _load(recipe, ())
    try:
        _load(recipe, overrides)
    except RecipeError as error:
        raise RecipeError(f"overrides of the place {place}:\n{str(error).replace('command line: ', '')}") from None


def _keys_of_files(value: Any, key: str = "") -> Iterator[str]:
    """Yield the dotted keys of a section, or of sections in a list, whose fields name files."""
    if isinstance(value, BaseModel):
        for name, field in type(value).model_fields.items():
            inner = child_key(key, name)
            if role(field) == "known_by_content":
                yield inner
            yield from _keys_of_files(getattr(value, name), inner)
    elif isinstance(value, tuple):
        for number, element in enumerate(value):
            yield from _keys_of_files(element, f"{key}.{number}")


def local_paths(files: Mapping[str, str]) -> dict[str, str]:
    """Return those of `Job.files` that name a place in this machine's file system: absolute paths, and `~`."""
    return {key: path for key, path in files.items() if path.startswith(("/", "~"))}


def list_files(files: Mapping[str, str]) -> str:
    """Format the files of `Job.files` for a note."""
    return ", ".join(f"{key} = {path}" for key, path in files.items())


def refuse_secrets(values: Any, file: str, lines: Mapping[str, int], remedy: str) -> None:
    """Raise one `RecipeError` that lists every secret in TOML values without showing it, followed by `remedy`.

    To be called before the values are validated: sentences about other mistakes cite values. `lines` is as in
    `core.toml.validate`.
    """
    if found := list(secrets(values)):
        from bertwright.core.validation_messages import locate  # not needed at every start

        found_at = [f"{locate(key, file, lines)}: {key} holds {secret}" for key, secret in found]
        raise RecipeError(
            "\n".join(f"{each}, but job descriptions must not contain secrets. {remedy}" for each in found_at)
        )


def secrets(values: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the dotted key of each string in TOML values that holds a secret, and the kind of secret, not its value."""
    if isinstance(values, list) and all(isinstance(each, str) for each in values):
        # It may be a command, in which one word explains the next: --token x.
        yield from ((child_key(key, position), what) for position, what in sorted(secrets_in_words(values).items()))
    elif isinstance(values, dict | list):
        for name, child in values.items() if isinstance(values, dict) else enumerate(values):
            yield from secrets(child, child_key(key, name))
    elif isinstance(values, str) and (what := secret_in(values)):
        yield key, what


_WRITTEN = re.compile(r"corpus\.cache_dir|train\.observers\.\d+\.folder")
"""Keys of folders that a run writes to; it reads everything else that a recipe names."""


def unpersisted_outputs(job: Job, kept: str) -> str:
    """Return a note naming the absolute folders that the run writes to and that are not below `kept`, the folder of the
    place that remains; "" if there are none."""
    named = {key: text for key, text in texts(job.values) if _WRITTEN.fullmatch(key)}
    lost = {
        key: path
        for key, path in local_paths(named).items()
        if not PurePosixPath(os.path.normpath(path)).is_relative_to(kept)
    }
    if not lost:
        return ""
    return (
        f"{list_files(lost)}: where the run works this is no folder of your machine. It may not be allowed to write "
        "there, and what it writes is lost. Leave the key out."
    )
