"""`init`: write a commented recipe from the answers to five questions, or from options and texts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertwright.cli.options import Json, option_groups
from bertwright.cli.text import json_line, terminal_width, visible, wrap
from bertwright.core.errors import RecipeError

if TYPE_CHECKING:
    from bertwright.init.answers import Answers
    from bertwright.init.continued.run import Asked


@dataclass(frozen=True)
class Wanted:
    """The answers, from which a recipe is drafted, as far as they are options."""

    language: Annotated[str, typer.Option("--language", metavar="CODE", help="Code of a Wikipedia, such as hu.")] = ""
    machine: Annotated[
        str, typer.Option("--machine", metavar="WHAT", help="The machine: here, 16-cores, h100, 8xh100 ...")
    ] = ""
    hours: Annotated[
        str, typer.Option("--hours", metavar="NUMBER", help="Hours from the dump to the finished model.")
    ] = ""
    quality: Annotated[str, typer.Option("--quality", metavar="WHICH", help="quick, classic or best.")] = ""


@dataclass(frozen=True)
class Continued:
    """Texts of the user's own, and a network to continue on them."""

    start: Annotated[
        str,
        typer.Option("--from", metavar="FOLDER", help="A network to continue on text of your own: a run or a folder."),
    ] = ""
    source: Annotated[
        list[str] | None,
        typer.Option("--source", metavar="TEXTS", help="Texts of your own to learn from; may be repeated."),
    ] = None
    general: Annotated[
        list[str] | None,
        typer.Option(
            "--general", metavar="TEXTS", help="With --from: text like that it was trained on, against forgetting."
        ),
    ] = None


@option_groups
def init(
    wanted: Wanted,
    given: Continued,
    out: Annotated[
        str, typer.Option(metavar="FILE", help="The file of the recipe; default: CODE.toml, or continued.toml.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Write a commented recipe for a language, a machine and a number of hours, asking for what no option gives: from
    the Wikipedia or with --source from texts of your own; with --from, one that continues a network on these."""
    if given.start:
        from bertwright.init.continued.run import Asked

        texts = (given.source or (), given.general or ())
        _continue(Asked(given.start, *texts, wanted.language, wanted.machine, wanted.hours, out), wanted, as_json)
    elif given.general:
        raise RecipeError("--general is text against forgetting for a network to continue: give its folder as --from.")
    else:
        _from_scratch({f"--{name}": value for name, value in vars(wanted).items()}, given.source or (), out, as_json)


def _continue(asked: Asked, wanted: Wanted, as_json: bool) -> None:
    """Write a recipe that continues a network."""
    from bertwright.init.continued.head import commands, facts, warnings
    from bertwright.init.continued.run import draft_continued

    if wanted.quality:
        raise RecipeError("--quality chooses a network, but --from already names one: leave --quality out.")
    if not asked.source:
        raise RecipeError("--from needs the text to learn: give --source TEXTS, a file, a folder or a pattern.")
    request, plan = draft_continued(asked)
    if as_json:
        settings = vars(request.settings) | {"fertility": request.own.cut.fertility, "tokens": request.own.tokens}
        known: dict[str, Any] = {"path": str(request.out), "settings": settings, "warnings": warnings(request)}
        print(json_line({**known, "commands": commands(request), "forecast": plan}))
        return
    width = terminal_width()
    lines = [line for fact in facts(request, plan) for line in wrap(fact[:11], fact[11:], width)]
    lines += [line for warning in warnings(request) for line in wrap("NOTE       ", f"{warning}.", width)]
    lines += [f"{request.out} is written. Look at it, then:", *(f"  {line}" for line in commands(request))]
    print(visible("\n".join(lines)))


def _from_scratch(given: dict[str, str], source: Sequence[str], out: str, as_json: bool) -> None:
    """Write a recipe for a training from random weights, on the Wikipedia or on the texts `source`."""
    from bertwright.core.files import make_folder, write_atomic
    from bertwright.init.answers import parse_hardware, parse_machine
    from bertwright.init.choose import choose, text_of
    from bertwright.init.draft import Request
    from bertwright.init.dump_sizes import wiki_size
    from bertwright.init.head import commands, head, place_text
    from bertwright.init.texts import language_of, read_own_texts

    if source and not given["--language"]:
        given = given | {"--language": language_of(source)}
    missing = [name for name, value in given.items() if not value]
    if missing and not sys.stdin.isatty():
        raise RecipeError(f"questions cannot be asked, because the input is not a terminal. Give {', '.join(missing)}.")
    answers = _answers(given, out, asking=bool(missing))
    own = read_own_texts(source, answers.language) if source else None
    request = Request(answers, wiki_size(answers.language), parse_machine(answers.machine), own)
    choice = choose(request)
    make_folder(answers.out.parent)
    write_atomic(answers.out, f"{head(request, choice)}\n{text_of(choice.sections)}".encode())
    place, hardware = answers.place, parse_hardware(answers.machine)
    if place is not None and hardware is not None:
        write_atomic(place, place_text(answers, hardware).encode())
    before, there = commands(request)
    if as_json:
        facts: dict[str, Any] = {"path": str(answers.out), "place": str(place or ""), "size": choice.size}
        print(json_line({**facts, "commands": [*before, *there], "forecast": choice.plan}))
        return
    if place is None:
        lines = [f"{answers.out} is written. Look at it, then:", *(f"  {line}" for line in [*before, *there])]
    else:
        lines = [f"{answers.out} is written, and {place}, which describes the machine. Look at them, then:"]
        lines += [*(f"  {line}" for line in before), "and on that machine:", *(f"  {line}" for line in there)]
    print(visible("\n".join(lines)))


def _answers(given: dict[str, str], out: str, asking: bool) -> Answers:
    """The answers from options and, for those that are missing, from the user at the terminal."""
    from bertwright.init.answers import (
        QUALITIES,
        Answers,
        parse_hours,
        parse_language,
        parse_machine,
        parse_out,
        parse_quality,
    )

    code = parse_language(_ask(given["--language"], "Code of the Wikipedia (hu, uk, zh-yue ...)", "", parse_language))
    machine = _ask(given["--machine"], "Machine (here, 16-cores, h100, 8xh100 ...)", "here", parse_machine)
    hours = _ask(given["--hours"], "Hours from the dump to the finished model", "24", parse_hours)
    meanings = "".join(f"  {name:<8} {meaning}\n" for name, meaning in QUALITIES.items())
    quality = _ask(given["--quality"], f"{meanings}Which of them", "classic", parse_quality)
    # Asked for only together with other questions, so that options alone need no answer.
    path = _ask(out or ("" if asking else f"{code}.toml"), "File of the recipe", f"{code}.toml", parse_out)
    return Answers(code, machine, parse_hours(hours), parse_quality(quality), parse_out(path))


def _ask(given: str, question: str, default: str, read: Callable[[str], object]) -> str:
    """The value of an option, or what the user types; asks again until it is valid."""
    if given:
        read(given)
    while not given:
        # Standard output is for the result, which a pipe may read.
        print(visible(question + (f" [{default}]" if default else "")), end=": ", file=sys.stderr, flush=True)
        if not (line := sys.stdin.readline()):
            raise RecipeError(
                "the input ended before all questions were answered. Start again, or give the other answers as options."
            )
        typed = line.strip() or default
        try:
            read(typed)
            given = typed
        except RecipeError as error:
            # Without the option that the sentence begins with: the user did not type it.
            print(visible(str(error).partition(": ")[2]), file=sys.stderr)
    return given
