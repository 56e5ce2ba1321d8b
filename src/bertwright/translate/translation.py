"""Translate commands of other programs into one recipe, with an account of every option.

Commands that a script starts are followed, with the script's arguments filled in. Secrets are removed, so that the
recipe can be shared.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import Any

from bertwright.core.errors import RecipeError
from bertwright.core.secrets import hide_in_value, hide_in_words
from bertwright.translate.azure_job import combine, missing_job_file
from bertwright.translate.command import Command, Key, parse_arguments
from bertwright.translate.complete import complete, faults, questions
from bertwright.translate.draft import OPEN_BATCH, OPEN_SOURCE, Account, Draft, nest
from bertwright.translate.launchers import Launch, strip_launchers
from bertwright.translate.place import open_keys, place_of, unplaced_settings
from bertwright.translate.program import Start, called, programs
from bertwright.translate.shell import ShellCommand

LEFT = {
    *("cd", "mkdir", "mv", "cp", "rm", "wget", "curl", "git", "bzip2", "bunzip2", "tar", "pip", "pip3", "echo", "sed"),
    *("set", "ls", "docker", "conda", "tee", "wait", "az", "printf", "cat", "unset", "ulimit", "module", "chmod", "ln"),
    *("build.sh", "launch.sh", "launch_ort.sh", "setup.sh", "ml"),
}
"""Commands of a script that handle files, packages and modules, and do not affect training."""


@dataclass(frozen=True)
class Translation:
    """A recipe equivalent to commands of other programs, and how to start it."""

    sections: dict[str, Key]
    """The keys outside the phases, in order."""
    phases: tuple[dict[str, Key], ...]
    """The keys of each phase, without `train.phases.N.`."""
    accounts: tuple[Account, ...]
    """What became of every option that the commands set."""
    remarks: tuple[str, ...]
    """What is wrong or contradictory in the original commands."""
    open: tuple[str, ...]
    """What no command states and only the user knows."""
    commands: tuple[str, ...]
    """The translated commands as typed, without secrets."""
    left: tuple[str, ...]
    """The commands of a script that do not affect the recipe, by line and name."""
    launch: Launch
    out: str
    """The run folder derived from the commands' output folder; empty: none."""

    @property
    def recipe(self) -> dict[str, Any]:
        """The recipe as nested tables."""
        values = nest({key.key: key.value for key in self.sections.values()})
        phases = [nest({key.key: key.value for key in phase.values()}) for phase in self.phases]
        return {**values, "train": {"phases": phases, **values.get("train", {})}}

    @property
    def filled_recipe(self) -> dict[str, Any]:
        """The recipe with the smallest possible batch in place of each that is left open, and a text, so that all else
        in it can be checked."""
        recipe = self.recipe
        if self.lacks_text:
            recipe["corpus"]["source"] = "sample"
        if any(question.startswith(OPEN_BATCH) for question in self.open):
            for phase in recipe["train"]["phases"]:
                phase.setdefault("batch", phase.get("micro_batch") or 1)
        return recipe

    @property
    def lacks_text(self) -> bool:
        """Whether no command names the text to begin with."""
        return any(question.startswith(f"{OPEN_SOURCE}:") for question in self.open)

    @property
    def place_keys(self) -> dict[str, Key]:
        """The settings of the place to start it at, for `bertwright launch`, each with the option that it comes from;
        empty for a single process, and for a number of processes that only the machine knows."""
        gpus = self.sections.get("train.device", Key("", "auto")).value != "cpu"
        return place_of(self.launch, gpus, self.recipe)

    @property
    def place(self) -> dict[str, Any]:
        """The values of `place_keys`."""
        return {name: key.value for name, key in self.place_keys.items()}

    @property
    def filled_place(self) -> dict[str, Any]:
        """The place with an example of what is left open, so that all else in it can be checked."""
        return self.place | open_keys(self.launch)

    @property
    def unplaced(self) -> list[str]:
        """What is set for the machines and is not part of the place, with the reason where one is known."""
        return unplaced_settings(self.launch, self.recipe)

    def facts(self) -> dict[str, Any]:
        """Return everything besides the recipe, as JSON values."""
        return {
            "options": [account._asdict() for account in self.accounts],
            "remarks": list(self.remarks),
            "open": list(self.open),
            "commands": list(self.commands),
            "left": list(self.left),
            "place": self.place,
            "unplaced": self.unplaced,
        }


def translate(script: list[ShellCommand], strict: bool = True) -> Translation:
    """Return the recipe for one or several commands.

    If `strict`, an unknown command is an error even if it only moves files. Unknown programs, unknown options of
    programs and launchers, and invalid values raise one `RecipeError` per command.
    """
    draft, launch, out, done, left = Draft(), Launch(), "", list[str](), list[str]()
    trained: list[Command] = []
    hidden = False
    for given in script:
        shell = without_secrets(given)
        name = PurePosixPath((strip_launchers(shell.words)[1] or ("",))[0]).name
        if not strict and (name in LEFT or _sets_up(shell.words, name)):
            # The words may contain passwords of logins and servers.
            left.append(f"line {shell.line}: {name or shell.words[0]}")
            draft.open += filter(None, [missing_job_file(shell)])
            continue
        done.append(_typed(shell))
        hidden = hidden or done[-1] != _typed(given)
        for command in _commands(shell, shell.launch, draft):
            draft.add(command)
            trained += [command] if command.program.phase == "training" else []
            launch = command.launch.after(launch) if command.launch.by else launch
            out = out or str(command["output_dir"] or "")
    if not done:
        nothing = "there is no command to translate. Give the command of a known program after --."
        raise RecipeError("\n".join(draft.open) or nothing)
    if not draft.keys and not draft.phases:
        raise RecipeError(
            f"{'; '.join(done)}: these commands do not determine any training. Give the command that trains."
        )
    complete(draft)
    remarks = (*draft.remarks, *faults(draft, launch.ranks))
    opened = (*draft.open, *questions(draft, trained, launch), *([LEFT_OUT] if hidden else []))
    return Translation(
        draft.keys, tuple(draft.phases), tuple(draft.accounts), remarks, opened, tuple(done), tuple(left), launch, out,
    )  # fmt: skip


def _commands(shell: ShellCommand, launch: Launch, draft: Draft) -> Iterator[Command]:
    """Yield the commands of known programs that a command resolves to, with its number of processes."""
    own, words = strip_launchers(shell.words, shell.job)
    launch = combine(own, launch)
    command = _known(shell, launch, words)
    if command.program.phase != "script":
        yield command
        return
    passed: set[str] = set()
    for start in command.program.starts:
        started = start_command(start, command, shell, passed)
        # Commands inherit the script's launcher unless they set the number of processes themselves.
        yield from _commands(started, launch, draft)
    draft.account_for_script(command, passed)


def _sets_up(words: tuple[str, ...], name: str) -> bool:
    """Whether a command reads a file that sets up the environment: `source venv/bin/activate`."""
    return words[0] in ("source", ".") and not called(name)


def _typed(shell: ShellCommand) -> str:
    """Return a command preceded by the variables that its program reads."""
    _, words = strip_launchers(shell.words)
    read = {
        name for program in called(words[0] if words else "") for name in program.options if name in program.unnamed
    }
    variables = [f"{name}={shlex.quote(value)}" for name, value in shell.variables.items() if name in read]
    return " ".join([*variables, shlex.join(shell.words)])


def _known(shell: ShellCommand, launch: Launch, words: tuple[str, ...]) -> Command:
    """Parse the command as the first program of its name that has all its options."""
    if not words:
        raise RecipeError(f"line {shell.line}: {shlex.join(shell.words)}: no program follows. Give its command line.")
    candidates = called(words[0])
    if not candidates:
        names = [script for program in programs().values() for script in program.scripts]
        near = get_close_matches(PurePosixPath(words[0]).name, names, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Known programs: {', '.join(sorted(set(names)))}."
        raise RecipeError(f"line {shell.line}: {words[0]} is not a program that can be translated. {hint}")
    errors = []
    for program in candidates:
        try:
            return Command(
                program,
                parse_arguments(program, words[1:], shell.variables, shell.folder),
                launch,
                shlex.join(words),
                shell.folder,
            )
        except RecipeError as error:
            errors.append(str(error))
    # Missing options do not suggest that another program is meant; unknown options do.
    fewest = min(errors, key=lambda text: sum(" needs " not in line for line in text.splitlines()))
    raise RecipeError("\n".join(f"line {shell.line}: {sentence}" for sentence in fewest.splitlines()))


_VARIABLE = re.compile(r"\$(\w+)")


def start_command(start: Start, script: Command, shell: ShellCommand, passed: set[str]) -> ShellCommand:
    """Return a command that a script starts, with the script's arguments filled in; add their names to `passed`."""

    def filled(text: str) -> str:
        passed.update(_VARIABLE.findall(text))
        return _VARIABLE.sub(lambda found: _text(script, found[1], shell) or found[0], text)

    words = [*filled(start.launcher).split(), *map(filled, start.command)]
    variables = dict(shell.variables)
    for condition, *more in start.when:
        name, equals, wanted = condition.partition("=")
        other = name.endswith("!")
        passed.add(name := name.removesuffix("!"))
        text = _text(script, name, shell)
        if (text == wanted) != other if equals else text not in ("", "None"):
            for word in map(filled, more):
                assigned = re.fullmatch(r"([A-Z]\w*)=(.*)", word)
                variables |= {assigned[1]: assigned[2]} if assigned else {}
                words += [] if assigned else [word]
    # `python run.py --x`: the launcher comes first, then the program's own words.
    return ShellCommand(tuple(words), variables, shell.line, folder=shell.folder)


def _text(script: Command, name: str, shell: ShellCommand, inside: frozenset[str] = frozenset()) -> str:
    """Return the value of a script's argument as the shell would write it. An argument that refers to itself
    (`DATASET_DIR=$DATASET_DIR`), which `inside` detects, is kept unchanged."""
    if name in inside:
        return f"${name}"
    if name not in script.settings:
        return shell.variables.get(name, "")
    setting = script.settings[name]
    text = str(setting.value).lower() if isinstance(setting.value, bool) else setting.typed or str(setting.value)
    return _VARIABLE.sub(lambda found: _text(script, found[1], shell, inside | {name}) or found[0], text)


LEFT_OUT = (
    "A user name, password, query or secret variable of the commands was removed here. Set it where the recipe "
    "runs, not in a file."
)


def without_secrets(command: ShellCommand) -> ShellCommand:
    """Return the command without names, passwords and queries in addresses, and without values of secret variables,
    options and headers."""
    variables = {name: hide_in_value(name, value) for name, value in command.variables.items()}
    return command._replace(words=_without(command.words), variables=variables, job=_without(command.job))


def _without(words: tuple[str, ...]) -> tuple[str, ...]:
    # Slurm takes variables as a list: --export=ALL,NAME=value.
    return tuple(",".join(hide_in_words(word.split(","))) for word in hide_in_words(words))
