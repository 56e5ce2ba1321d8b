"""The command line: parse, call, and turn errors into exit codes.

From a Wikipedia dump in any language to a tested BERT: one recipe, one command.

Exit codes: 0 done · 1 fault of bertwright · 2 recipe or usage · 3 input data · 4 artifact or checkpoint ·
5 missing package · 6 a rank is lost · 75 stopped by a signal, 130 by Ctrl-C, with what is finished kept and training
saved (run again).
"""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
import typer.core

from bertwright.cli.text import error_hint, json_line, visible
from bertwright.core import __version__
from bertwright.core.errors import (
    BertwrightError,
    DivergedError,
    Interrupted,
    RankError,
    RecipeError,
    memory_error,
    missing_package_error,
    system_error,
)
from bertwright.core.secrets import hide_secrets
from bertwright.core.signals import Stopped, check_stop, end_on_signals, exit_message

_PANELS = {
    "First steps": {
        "demo": "demo:demo",
        "init": "init:init",
        "check": "check:check",
        "plan": "plan:plan",
        "run": "stages:run_command",
        "recipes": "check:recipes",
    },
    "Look at a run, and ask its model": {
        "serve": "serve:serve",
        "watch": "watch:watch",
        "inspect": "inspect:inspect",
    },
    "One stage of a run": {
        "corpus": "corpus:corpus",
        "vocab": "vocab:vocab",
        "examples": "stages:examples",
        "train": "stages:train",
        "evaluate": "evaluate:evaluate",
        "export": "stages:export",
        "report": "stages:report",
    },
    "With a model": {
        "finetune": "finetune:finetune",
        "embed": "embed:embed",
        "predict": "predict:predict",
        "import": "import_model:import_",
        "convert": "convert:convert",
        "certify": "certify:certify",
        "publish": "publish:publish",
    },
    "Other machines and other programs": {
        "launch": "launch:launch",
        "launch upload": "launch:upload",
        "places": "check:places",
        "translate": "translate:translate",
        "bench": "bench:verbs",
    },
}
"""The module and the function of each verb, by what it is for, in the order of `--help`."""
_PANEL_OF = {verb: panel for panel, verbs in _PANELS.items() for verb in verbs}
_VERBS = {verb: function for verbs in _PANELS.values() for verb, function in verbs.items()}
_START = """\
From a Wikipedia dump in any language to a tested BERT: one recipe, one command.

  bertwright demo           a first model in some minutes, each step explained
  bertwright init           a recipe for your language, machine and hours
  bertwright check RECIPE   what would stop it, before it starts
  bertwright run RECIPE     from the text to the tested model; again to continue
  bertwright serve RUN      a page on which a model answers
  bertwright --help         everything else
"""
"""What is printed without a verb: the complete list fills more than a screen."""


_USAGE: Any = typer.BadParameter.__mro__[1]
"""Base class of usage errors: click's, or that of typer's own copy of click, which has no public name."""


class Verbs(typer.core.TyperGroup):
    """The verbs by name, each imported on use: importing all of them takes longer than running most of them.
    `--help` imports all of them, so their modules defer the imports that only their work needs.

    Some verbs have two words: `launch upload` is not `launch` with a target.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all verbs."""
        return list(_VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The verb with that name, if there is one."""
        if cmd_name in _VERBS and cmd_name not in self.commands:
            self.add_command(_load(cmd_name), cmd_name)
        return super().get_command(ctx, cmd_name)

    def make_context(self, *words: Any, **options: Any) -> Any:
        """The options before the verb, read."""
        with _hide_secrets():
            return super().make_context(*words, **options)

    def invoke(self, ctx: Any) -> Any:
        """Read the words after the verb, and call it."""
        with _hide_secrets():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The name of the verb that the command line begins with, the verb, and the words after it."""
        if (two := " ".join(args[:2])) in _VERBS:
            args = [two, *args[2:]]
        elif args[0] not in _VERBS:
            for name in _VERBS:  # to suggest those similar to a mistyped one
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)


@contextmanager
def _hide_secrets() -> Iterator[None]:
    """Hide secrets in usage errors, which cite the words of the command line."""
    try:
        yield
    except _USAGE as error:
        error.message = hide_secrets(error.message)
        raise


def _load(name: str) -> Any:
    module, _, function = _VERBS[name].partition(":")
    # What an import creates stays alive: garbage collection meanwhile would scan all of it and free nothing.
    gc.disable()
    try:
        verb = getattr(import_module(f"bertwright.cli.{module}"), function)
    finally:
        gc.enable()
    check_stop()
    if not isinstance(verb, typer.Typer):
        alone = typer.Typer(add_completion=False)
        alone.command(name)(verb)
        verb = alone
    command = _as_written(typer.main.get_command(verb))
    command.rich_help_panel = _PANEL_OF[name]
    return command


def _as_written(command: Any) -> Any:
    """The command with a help that rich shows as it is written, `[hardware]` too, which is markup to it and would be
    dropped; and without Python's names of types."""
    for each in (command, *command.params):
        if each.help and typer.core.HAS_RICH:
            each.help = _MARKUP.sub(lambda found: f"{2 * found[1]}\\{found[2]}", each.help)
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            parameter.display_type_rich = lambda ctx: None  # its name and its help say what to give
        elif parameter.is_flag:
            parameter.metavar = ""
        parameter.callback = parameter.callback or _expand_homes
    make_parser = command.make_parser
    command.make_parser = lambda ctx: _refuse_repeated(make_parser(ctx), ctx)
    for inner in getattr(command, "commands", {}).values():
        _as_written(inner)
    return command


def _expand_homes(ctx: Any, parameter: Any, value: Any) -> Any:
    """The value of an option or argument, in whose paths `~` is expanded: no shell does that in `--out=~/run`."""
    if isinstance(value, list):
        return [_expand_homes(ctx, parameter, each) for each in value]
    if not isinstance(value, Path):
        return value
    from bertwright.core.config import expand_home  # pydantic, which --version does without

    try:
        return expand_home(value)
    except ValueError as error:
        raise RecipeError(f"{max(parameter.opts, key=len)} {value}: {error}.") from None


def _refuse_repeated(parser: Any, ctx: Any) -> Any:
    """The parser of a verb, refusing an option of one value that is given twice, of which click drops the first."""
    parse_args = parser.parse_args

    def parse_once(args: list[str]) -> Any:
        values, rest, order = parse_args(args)
        for place, each in enumerate(order):
            single = each.param_type_name == "option" and not (each.multiple or each.count or each.is_flag)
            if single and each in order[:place]:
                raise _USAGE(f"{max(each.opts, key=len)} is given twice; only one value can be used.", ctx)
        return values, rest, order

    parser.parse_args = parse_once
    return parser


_MARKUP = re.compile(r"(\\*)(\[[a-z#/@][^\[]*?\])")
"""What rich takes for markup, as `rich.markup.escape` finds it, whose import would slow down every start."""

app = typer.Typer(
    cls=Verbs,
    # One line a paragraph: typer keeps the ends of the lines of this file.
    help=re.sub(r"(?<!\n)\n(?!\n)", " ", (__doc__ or "").partition("\n\n")[2]),
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"bertwright {__version__}")
        raise typer.Exit


@app.callback()
def program(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """The options before any verb."""
    if ctx.invoked_subcommand is None:
        print(_START, end="")
        raise typer.Exit(2)


def main() -> None:
    """Parse and call: user errors are printed without a traceback and determine the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a notebook has its own
            # JSON is always UTF-8; otherwise, a terminal may not have the letters of a name.
            encoding = "utf-8" if stream is sys.stdout and _as_json() else None
            stream.reconfigure(encoding=encoding, errors="backslashreplace")
    with end_on_signals(), _stop_at_output():
        try:
            _parse_and_call()
        finally:
            _write_out()


@contextmanager
def _stop_at_output() -> Iterator[None]:
    """Make writing to standard output a safe point for signals: a stopped command prints no result, and a signal after
    the last line of the result no longer stops anything."""
    stream, write = sys.stdout, sys.stdout.write

    def write_unless_stopped(text: str) -> int:
        if text.strip("\n"):  # not the end of a line, or nothing: the result is out
            check_stop()
        return write(text)

    with suppress(AttributeError):  # a stream of another program, which takes no attributes
        setattr(stream, "write", write_unless_stopped)  # noqa: B010 (a method cannot be assigned to)
    try:
        yield
    finally:
        with suppress(AttributeError):
            delattr(stream, "write")


def _parse_and_call() -> None:
    """Run the verb; a signal ends it at a safe point, even one where an error is about to be printed."""
    try:
        _call()
    except Stopped as stop:
        _leave(*exit_message(stop))


def _call() -> None:
    try:
        check_stop()
        # With --json, usage errors are also JSON objects; without it they are shown with the usage.
        sys.exit(app(prog_name="bertwright", standalone_mode=not _as_json()) or 0)
    except _USAGE as error:
        where = f" Look at {error.ctx.command_path} --help." if error.ctx else ""
        _leave(" ".join(error.format_message().split()).rstrip(".") + "." + where, error.exit_code)
    except BertwrightError as error:
        # The signal may have ended a program that the command had started; training stops by itself.
        if not isinstance(error, Interrupted | DivergedError | RankError):
            check_stop()
        _leave(str(error), error.exit_code)
    # A full disk, a folder without permission: the user can fix it, so print a sentence and no traceback.
    except OSError as error:
        if (known := system_error(error)) is None:
            raise
        _leave(str(known), known.exit_code)
    # torch reports a lack of memory as a RuntimeError; a library that cannot be mapped raises ImportError.
    except (MemoryError, RuntimeError, ImportError) as error:
        _leave_for_lack(error)


def _write_out() -> None:
    """Flush standard output: Python would do so at interpreter exit, when a full disk could no longer be reported."""
    leaving = sys.exc_info()[1]
    try:
        print(end="", flush=True)
    except OSError as error:
        # Nothing more can be printed there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # A reader that stops early, such as `head`, is no fault; and only the first error is reported.
        failed = isinstance(leaving, SystemExit) and leaving.code
        if not failed and not isinstance(error, BrokenPipeError) and (known := system_error(error)):
            print(f"bertwright: {known}", file=sys.stderr)
            sys.exit(known.exit_code)


def _as_json() -> bool:
    # Checks the words as typed: an error may occur before they are parsed.
    return "--json" in sys.argv[1:]


def _leave_for_lack(error: Exception) -> NoReturn:
    """Exit with a sentence if the error says that memory or a package is missing; else raise it again."""
    if (known := memory_error(error) or missing_package_error(error)) is None:
        raise error
    _leave(str(known), known.exit_code)


def _leave(message: str, code: int) -> NoReturn:
    """Print what ended the command, and exit; with --json as an object on standard output."""
    if _as_json():
        print(json_line({"error": {"code": code, "message": message, "hint": error_hint(message)}}))
    else:
        print(f"bertwright: {visible(message)}", file=sys.stderr)
    sys.exit(code)
