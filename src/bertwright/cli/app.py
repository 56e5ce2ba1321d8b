"""The command line: parse, call, and turn errors into exit codes.

From a Wikipedia dump in any language to a tested BERT: one recipe, one command.

Exit codes: 0 done · 1 fault of bertwright · 2 recipe or usage · 3 input data · 4 artifact or checkpoint ·
5 missing package · 6 a rank is lost · 75 stopped by a signal, 130 by Ctrl-C, with what is finished kept and training
saved (run again).
"""

from __future__ import annotations

import re
import sys
from typing import Annotated, Any, NoReturn

import typer
import typer.core

from bertwright._version import __version__
from bertwright.cli import (
    bench,
    check,
    convert,
    corpus,
    init,
    inspect,
    launch,
    plan,
    stages,
    transfer,
    translate,
    vocab,
)
from bertwright.cli.formatting import json_line, visible
from bertwright.core.errors import BertwrightError, of_memory, of_the_system
from bertwright.core.signals import Stopped, end_on_signals, farewell
from bertwright.pipeline.stage import STAGES


class Verbs(typer.core.TyperGroup):
    """The verbs by their names, of which some have two words: `launch upload` is no `launch` of a target."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The verb that the command line begins with, its name, and the words after it."""
        if (two := " ".join(args[:2])) in self.commands:
            args = [two, *args[2:]]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=Verbs,
    help=(__doc__ or "").partition("\n\n")[2],
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"bertwright {__version__}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """The options before any verb."""


_STAGES = {**stages.VERBS, **corpus.VERBS, **vocab.VERBS}
for _name in ("run", *STAGES):
    app.command(_name)(_STAGES[_name])
_GROUPS = (check, init, plan, convert, inspect, launch, transfer, translate)
for _name, _verb in [verb for group in _GROUPS for verb in group.VERBS.items()]:
    app.command(_name)(_verb)
app.add_typer(bench.verbs, name="bench")


def main() -> None:
    """Parse and call: errors of the user's make are printed without a traceback and give their exit code."""
    try:
        with end_on_signals():
            _parse_and_call()
    # Waiting for signals takes a thread, and there may be no memory for one.
    except RuntimeError as error:
        _leave_for_memory(error)


def _parse_and_call() -> None:
    try:
        app()
    except BertwrightError as error:
        _leave(str(error), error.exit_code)
    # A full disk, a folder without permission: the user's to mend, so a sentence and no traceback.
    except OSError as error:
        if (told := of_the_system(error)) is None:
            raise
        _leave(str(told), told.exit_code)
    # torch reports a lack of memory as a RuntimeError, and a library that cannot be mapped is an ImportError.
    except (MemoryError, RuntimeError, ImportError) as error:
        _leave_for_memory(error)
    except Stopped as stop:
        _leave(*farewell(stop))


def _leave_for_memory(error: Exception) -> NoReturn:
    """Leave with a sentence if the error says that there is no memory left; else it is raised again."""
    if (full := of_memory(error)) is None:
        raise error
    _leave(str(full), full.exit_code)


def _leave(message: str, code: int) -> NoReturn:
    """Say what ended the command, and exit; with --json as an object on standard output, whose hint is what to do: the
    last sentence, by the rule that errors follow.
    """
    # Of the words as they were typed: the error may come before they are parsed.
    if "--json" in sys.argv[1:]:
        hint = re.split(r"(?<=[.?;:]) ", message)[-1]
        print(json_line({"error": {"code": code, "message": message, "hint": hint}}))
    else:
        print(f"bertwright: {visible(message)}", file=sys.stderr)
    sys.exit(code)
