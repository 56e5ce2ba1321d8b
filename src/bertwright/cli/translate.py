"""`translate`: turn the command line of another program into a recipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertwright.cli.options import Json
from bertwright.cli.text import json_line
from bertwright.core.errors import RecipeError
from bertwright.core.files import write_atomic

if TYPE_CHECKING:  # only this verb needs the tables of the other programs
    from bertwright.translate.shell import ShellCommand
    from bertwright.translate.translation import Translation

MAX_SCRIPT = 2**20
"""Maximum number of characters of a script."""
Script = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        help="Translate the commands of a shell script, of a job file of Azure ML (.yml), or of a folder of results of "
        "DeepSpeed's autotuner; - reads them here.",
    ),
]


def translate(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND", help="The command line, including the launcher that starts it."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the recipe to this file.")] = None,
    place: Annotated[
        Path | None, typer.Option("--place", metavar="FILE", help="Write the place (nodes and processes) to this file.")
    ] = None,
    script: Script = "",
    environment: Annotated[
        bool, typer.Option("--environment", help="Take the variables of Intel's scripts from the environment.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print the recipe that does what another program's command does, and what became of each of its options."""
    from bertwright.translate.text import place_text, start_line, text
    from bertwright.translate.translation import translate as translated

    _check_files(out, place)
    commands, strict = _commands(words or [], script, environment)
    translation = translated(commands, strict)
    if place and (uncounted := translation.launch.uncounted):
        raise RecipeError(
            f"--place {place}: {uncounted.option} starts {uncounted.starts}, and a place needs their number. Add it to "
            "the command."
        )
    if place and not translation.place:
        raise RecipeError(
            f"--place {place}: the command trains with one process, so there is no place to write. Leave it out."
        )
    _check_values(translation)
    names = str(out or "RECIPE"), str(place or "")
    recipe = text(translation, *names)
    _write({file: made for file, made in ((out, recipe), (place, place_text(translation))) if file})
    if as_json:
        start = start_line(translation, *names)
        print(json_line({"recipe": translation.recipe, "text": recipe, "start": start, **translation.facts()}))
    elif not out:
        print(recipe, end="")


def _check_files(out: Path | None, place: Path | None) -> None:
    """Raise `RecipeError` unless the recipe and the place can be two new files."""
    for option, file in (("--out", out), ("--place", place)):
        if file and file.exists():
            raise RecipeError(f"{option} {file} exists already. Give the name of a new file, or remove it first.")
        if file and not file.parent.is_dir():
            raise RecipeError(
                f"{option} {file}: {file.parent} is not a folder. Create it, or give a file in a folder that exists."
            )
    if out and place and out.resolve() == place.resolve():
        raise RecipeError(
            f"--out {out} and --place {place} are the same file, but the recipe and the place are two. Give another "
            "name to one of them."
        )


def _write(texts: dict[Path, str]) -> None:
    """Write all of the files, or none."""
    written: list[Path] = []
    try:
        for file, text in texts.items():
            write_atomic(file, text.encode())
            written.append(file)
    except BaseException:
        for file in written:
            file.unlink()
        raise


def _check_values(translation: Translation) -> None:
    """Raise `RecipeError` for values that no recipe or no place may have, each with the option it comes from."""
    from bertwright.core.toml import validate
    from bertwright.launch.config import TARGETS
    from bertwright.recipe import Recipe
    from bertwright.recipe_file import Written

    phases = (
        (f"train.phases.{number}.{name}", key.why)
        for number, phase in enumerate(translation.phases)
        for name, key in phase.items()
    )
    with _origins([*((name, key.why) for name, key in translation.sections.items()), *phases]):
        Recipe.from_values(Written("the recipe of this command", translation.filled_recipe, {}))
    if place := translation.filled_place:
        with _origins([(name, key.why) for name, key in translation.place_keys.items()]):
            validate(TARGETS[place["kind"]], place, "the place of this command", {})


@contextmanager
def _origins(origins: list[tuple[str, str]]) -> Iterator[None]:
    """Add to each mistake in a `RecipeError` the option that its value comes from; `origins` are keys and options."""
    try:
        yield
    except RecipeError as error:
        raise RecipeError("\n".join(_with_origin(line, origins) for line in str(error).splitlines())) from None


def _with_origin(mistake: str, origins: list[tuple[str, str]]) -> str:
    name = mistake.partition(": ")[2].partition(": ")[0]
    why = next((why for key, why in origins if why and f"{name}.".startswith(f"{key}.")), "")
    return f"{mistake.removesuffix('.')}. It comes from: {why}." if why else mistake


def _commands(words: list[str], script: str, environment: bool) -> tuple[list[ShellCommand], bool]:
    """Return the commands, with those of the job files that they submit, and whether each has to be a known one."""
    from bertwright.translate.azure_job import SUFFIXES, follow_submissions, parse_submission, read_job
    from bertwright.translate.shell import parse_script, parse_words

    if script and (words or environment):
        raise RecipeError("--script gives the commands; leave out the command line and --environment.")
    if script:
        script = _of_folder(script)
        folder = Path(script).parent
        job = script.endswith(SUFFIXES)
        return read_job(_read(script), folder) if job else follow_submissions(
            parse_script(_read(script)), folder
        ), False
    if environment:
        commands = parse_words(words or ["run.sh"])
        return [each._replace(variables={**os.environ, **each.variables}) for each in commands], True
    if not words:
        raise RecipeError(
            "no command is given. Write it after --: bertwright translate -- python run_pretraining.py ..."
        )
    commands = parse_words(words)
    return follow_submissions(commands, Path()), not any(parse_submission(each.words) for each in commands)


def _of_folder(script: str) -> str:
    """Return the file of the best command in a folder of results of DeepSpeed's autotuner; a file as it is."""
    from bertwright.translate.deepspeed_file import TUNED_COMMAND, tuned_command

    if not Path(script).is_dir():
        return script
    if file := tuned_command(Path(script)):
        return str(file)
    raise RecipeError(
        f"--script {script} is a folder without {TUNED_COMMAND}, which DeepSpeed's autotuner writes when its search "
        "has ended. Give a shell script, a job file (.yml), or the folder of its results (autotuning.results_dir)."
    )


def _read(script: str) -> str:
    try:
        # One character more than allowed is enough to see that a file is too long.
        if script == "-":
            text = sys.stdin.read(MAX_SCRIPT + 1).removeprefix("\ufeff")
        else:
            with Path(script).open(encoding="utf-8-sig") as file:  # Windows editors add a byte order mark
                text = file.read(MAX_SCRIPT + 1)
    except (OSError, ValueError) as error:
        raise RecipeError(
            f"--script {script} cannot be read: {error}. Give a shell script or a job file (.yml) in UTF-8."
        ) from error
    if len(text) > MAX_SCRIPT:
        raise RecipeError(
            f"--script {script} has more than {MAX_SCRIPT:,} characters, which is too long for a script, and a part "
            "of it would be translated incorrectly. Give the script, or a file with only its commands."
        )
    return text
