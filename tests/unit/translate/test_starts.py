"""Commands that a script starts: arguments and variables in their words, and words that depend on them."""

from typing import Any

from tests.rows import each_row

from bertwright.translate.command import Command, parse_arguments
from bertwright.translate.launchers import Launch
from bertwright.translate.program import Option, Program, Start
from bertwright.translate.shell import ShellCommand
from bertwright.translate.translation import start_command

OPTIONS = {
    "n": Option(type="int", default=8),
    "fp16": Option(type="switch", default=True),
    "data": Option(default="$DIR/hdf5"),
    "DIR": Option(),
}


def started(line: str, start: dict[str, Any], **variables: str) -> tuple[ShellCommand, set[str]]:
    script = Program(
        title="run.sh",
        scripts=("run.sh",),
        explained=(),
        phase="script",
        options=OPTIONS,
        positions=("n", "fp16", "data"),
    )
    words = tuple(line.split())
    shell = ShellCommand(("scripts/run.sh", *words), variables, 7)
    command = Command(script, parse_arguments(script, words, variables), Launch(), " ".join(shell.words))
    passed: set[str] = set()
    return start_command(Start(**start), command, shell, passed), passed


def words(line: str, *command: str, **variables: str) -> tuple[str, ...]:
    return started(line, {"command": command}, **variables)[0].words


def test_arguments_are_filled_in_as_they_were_typed() -> None:
    assert words("08", "x.py", "--n=$n") == ("x.py", "--n=08")
    assert words("", "x.py", "--n=$n-$fp16") == ("x.py", "--n=8-true"), "defaults as a shell writes them"


def test_argument_may_name_a_variable_and_unset_ones_are_kept() -> None:
    assert words("", "$data", DIR="/data") == ("/data/hdf5",)
    assert words("", "$data", "$OTHER") == ("$DIR/hdf5", "$OTHER")
    assert words("", "$OTHER", OTHER="x") == ("x",)
    assert words("", "$data", DIR="$DIR") == ("$DIR/hdf5",), "a variable that is given as itself has no end"


def test_the_launcher_comes_first_and_the_line_is_the_scripts() -> None:
    made, passed = started("4", {"launcher": "mpirun -n $n", "command": ("x.py", "$data")}, A="1")
    assert made.words == ("mpirun", "-n", "4", "x.py", "$DIR/hdf5") and made.line == 7
    assert made.variables == {"A": "1"} and passed == {"n", "data"}


@each_row(
    ("line", "condition", "holds"),
    [
        ("8 true", "fp16=true", True),
        ("8 false", "fp16=true", False),
        ("8 false", "fp16=false", True),
        ("8 true x", "data", True),
        ("8 true None", "data", False),
        ("", "DIR", False),
    ],
)
def test_further_words_have_a_condition(line: str, condition: str, holds: bool) -> None:
    made, passed = started(line, {"command": ("x.py",), "when": ((condition, "--more", "OMP=$n"),)})
    assert made.words == (("x.py", "--more") if holds else ("x.py",))
    assert made.variables.get("OMP") == ("8" if holds else None), "an assignment is a variable of the command"
    assert condition.partition("=")[0] in passed, "the argument is read, whatever it is"
