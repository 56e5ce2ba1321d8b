"""`az ml job create` in a script, replaced by the commands of the job file that it submits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bertwright.core.errors import RecipeError
from bertwright.translate.azure_job import of_job
from bertwright.translate.launchers import strip_launchers
from bertwright.translate.shell import ShellCommand
from bertwright.translate.statement import Statement

_CREATE = ("az", "ml", "job", "create")
_NAMES = {"-f": "--file", "-g": "--resource-group", "-w": "--workspace-name"}
"""Short names of options."""
_WORKSPACE = {"--resource-group": "resource_group", "--workspace-name": "name", "--subscription": "subscription"}
"""Options, and the keys of a place's workspace that correspond to them."""


class Submission(NamedTuple):
    """What `az ml job create` is told."""

    file: str
    """The job file; empty: none."""
    changes: tuple[str, ...]
    """Values of the file that it changes, as key=value."""
    workspace: dict[str, str]
    """The workspace, by keys of a place."""


def submission(words: tuple[str, ...]) -> Submission | None:
    """Return what a command submits to Azure ML; None if it is another command."""
    words = strip_launchers(words)[1]
    if words[: len(_CREATE)] != _CREATE:
        return None
    said = [*_options(words[len(_CREATE) :])]
    files = [value for option, value in said if option == "--file"]
    # A variable or a placeholder is not a name.
    named = [(option, value) for option, value in said if option in _WORKSPACE and re.fullmatch(r"[\w.()-]+", value)]
    workspace = {_WORKSPACE[option]: value for option, value in named}
    return Submission("".join(files[-1:]), tuple(value for option, value in said if option == "--set"), workspace)


def _options(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield each option with its value; an option that several values follow is yielded with each of them."""
    option = ""
    for word in words:
        if word.startswith("-"):
            typed, equals, value = word.partition("=")
            option = _NAMES.get(typed, typed)
            if equals:
                yield option, value
        else:
            yield option, word


def followed(commands: list[ShellCommand], folder: Path) -> list[ShellCommand]:
    """Return the commands, with those of a job file in place of the command that submits it, if the file is below
    `folder`. Raises `RecipeError` if it cannot be read or is no job file."""
    return [each for command in commands for each in _of(command, submission(command.words), folder)]


def _of(command: ShellCommand, submitted: Submission | None, folder: Path) -> Iterator[ShellCommand]:
    if not submitted or not submitted.file or not (file := folder / submitted.file).is_file():
        yield command
        return
    try:
        made = of_job(file.read_text(encoding="utf-8"), file.parent, submitted.changes)
    except (OSError, ValueError, RecipeError) as error:
        raise RecipeError(f"line {command.line}: {submitted.file}: {error}") from error
    stated = [Statement("az ml job create", "workspace", submitted.workspace)] if submitted.workspace else []
    for each in made:
        launch = replace(each.launch, stated=(*each.launch.stated, *stated))
        # Lines are those of the script, which a message about them names.
        yield each._replace(launch=launch, line=command.line)


def unfollowed(command: ShellCommand) -> str:
    """Return what to do about a job file that a command submits and that is not here; empty for other commands."""
    if not (submitted := submission(command.words)):
        return ""
    what = f"there is no file {submitted.file} here" if submitted.file else "it names no file (--file)"
    return (
        f"line {command.line}: az ml job create: {what}, so its job is not translated. Give the job file: bertwright "
        "translate --script FILE.yml."
    )
