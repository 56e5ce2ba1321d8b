"""Parse a shell script into simple commands with the variables that are set at each. Nothing is executed.

Variables are replaced as a shell does: the value of an unquoted one is split into words.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from bertwright.core.errors import RecipeError
from bertwright.translate.launchers import Launch, strip_launchers

_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_UNQUOTED = re.compile(r"""('[^']*'|"(?:\\.|[^"\\])*"|\\.)|(?:^|(?<=[\s;&|()]))#.*$|(?<=\s)\d(?=[<>])""")
"""Comments and numbers of redirected files; the group matches quoted text, which contains neither."""
_UNQUOTED_VARIABLE, _LITERAL, _SPLIT = "\ue000", "\ue001", "\ue002"
"""What stands for the $ of an unquoted variable, for a $ that is no variable, and for the end of a word. Unicode gives
these characters no meaning."""
_PIECES = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^'"\\]+""", re.DOTALL)
_VARIABLE = re.compile(rf"[${_UNQUOTED_VARIABLE}](?:(\w+)|\{{(\w+)(?::?-([^}}]*))?\}})")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_ENDS = {";", "&&", "||", "|", "|&", "&"}


class ShellCommand(NamedTuple):
    """One simple command."""

    words: tuple[str, ...]
    variables: Mapping[str, str]
    """Variables set before the command and in front of it."""
    line: int
    """Line of the script, counted from 1."""
    launch: Launch = Launch()
    """What starts it, if that is stated outside the command."""
    job: tuple[str, ...] = ()
    """The options of the Slurm job that the command is in, from the `#SBATCH` lines of its script."""
    folder: Path = Path()
    """The folder that the command runs in, if that is stated outside the command."""


def parse_words(words: list[str]) -> list[ShellCommand]:
    """Return the single command whose words a shell has already split."""
    own, rest = _split_assignments(words)
    return [ShellCommand(tuple(rest), own, 1)] if rest else []


def parse_script(text: str) -> list[ShellCommand]:
    """Return the commands of a script in order.

    `NAME=value` and `export NAME=value` set variables for later commands; `$NAME` and `${NAME:-default}` are replaced
    if they are known, and split into words if they are not quoted; otherwise they are kept. Redirections are dropped;
    the options of `#SBATCH` lines are kept with each command. Raises `RecipeError` with the line number for what only a
    shell can evaluate (`$(...)`) and for an open quote.
    """
    commands: list[ShellCommand] = []
    variables: dict[str, str] = {}
    job = _job(text)
    for number, line in _lines(text):
        for words in _simple(line, number):
            own, rest = _split_assignments(expand(words, variables))
            if rest and rest[0] == "export":
                own |= _split_assignments(rest[1:])[0]
                rest = []
            if rest:
                commands.append(ShellCommand(tuple(rest), variables | own, number, job=job))
            else:
                variables |= own
    return commands


def _job(text: str) -> tuple[str, ...]:
    """Return the options in the `#SBATCH` lines, of which Slurm reads those before the first command."""
    words: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#SBATCH "):
            try:
                words += shlex.split(line.removeprefix("#SBATCH "), comments=True)
            except ValueError as error:
                raise RecipeError(f"line {number}: {error}. Close the quote.") from error
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    return tuple(words)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with its number; a line that ends in a backslash is joined with the next, but no comment is."""
    begun, start = "", 1
    for number, line in enumerate(text.splitlines(), 1):
        start = start if begun else number
        if line.endswith("\\") and not line.lstrip().startswith("#"):
            begun += line[:-1] + " "
            continue
        yield start, begun + line
        begun = ""
    if begun:
        yield start, begun


def _simple(line: str, number: int) -> Iterator[list[str]]:
    line = _UNQUOTED.sub(lambda found: found[1] or "", line)
    if found := re.search(r"\$\(|`", line):
        raise RecipeError(f"line {number}: {found[0]} needs a shell, but no shell is run. Replace it by its output.")
    try:
        lexer = shlex.shlex(mark_variables(line), posix=True, punctuation_chars="();<>|&")
        # Comments are removed already, and inside a word # means itself.
        lexer.whitespace_split, lexer.commenters = True, ""
        tokens = list(lexer)
    except ValueError as error:
        raise RecipeError(f"line {number}: {error}. Close the quote, or join the lines.") from error
    words: list[str] = []
    skip = False
    for token in tokens:
        if token in _ENDS:
            yield words
            words = []
        elif token and set(token) <= set("<>&|"):
            skip = True  # a file name follows
        elif skip:
            skip = False
        else:
            words.append(token)
    yield words


def _split_assignments(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Split the `NAME=value` assignments from a command: those in front of it, and those that follow its launchers, as
    in `srun env NAME=value program`."""
    own: dict[str, str] = {}
    front: list[str] = []
    while words:
        if assigned := _ASSIGNED.fullmatch(words[0]):
            own[assigned[1]] = assigned[2]
            words = words[1:]
            continue
        program = strip_launchers(tuple(words))[1]
        if not program or not _ASSIGNED.fullmatch(program[0]):
            break
        front += words[: -len(program)]
        words = list(program)
    return own, front + words


def mark_variables(line: str) -> str:
    """Mark each $ of a line for `expand`, which gets words without quotes."""

    def piece(found: re.Match[str]) -> str:
        text = found[0]
        if text[0] == "'":
            return text.replace("$", _LITERAL)
        if text[0] == '"':
            return re.sub(r"\\(.)", lambda escape: _LITERAL if escape[1] == "$" else escape[0], text, flags=re.DOTALL)
        return _LITERAL if text == r"\$" else text.replace("$", _UNQUOTED_VARIABLE)

    return _PIECES.sub(piece, line)


def expand(words: list[str], variables: Mapping[str, str]) -> list[str]:
    """Return the words of a marked line with their variables replaced, if they are known, and otherwise kept."""
    made: list[str] = []
    assigns = True
    for word in words:
        # Values of assignments are not split.
        assigns = assigns and (word == "export" or _ASSIGNMENT.fullmatch(word) is not None)
        text = _replace_variables(word, variables, split=not assigns)
        parts = [part for part in text.split(_SPLIT) if part] if _SPLIT in text else [text]
        made += [part.replace(_LITERAL, "$") for part in parts]
    return made


def _replace_variables(word: str, variables: Mapping[str, str], split: bool) -> str:
    def value(found: re.Match[str]) -> str:
        text, default = variables.get(found[1] or found[2]), found[3]
        splits = split and found[0].startswith(_UNQUOTED_VARIABLE)
        if not text and default is not None:
            text = _replace_variables(default, variables, split)
        # An unquoted variable that is empty is no word; elsewhere, an empty one is left to the user to set.
        elif text == "" and splits and found[0] == word:
            text = " "
        elif not text:
            return f"${found[0][1:]}"
        return re.sub(r"\s+", _SPLIT, text) if splits else text

    return _VARIABLE.sub(value, word)
