"""The header comment of a drafted recipe: what it is, how to run it, and its forecast."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from bertwright.core.numbers import duration, pluralize, size_of
from bertwright.corpus.characters import spaced
from bertwright.corpus.wikis import wikis
from bertwright.estimate.machine import HardwareConfig
from bertwright.init.answers import QUALITIES, Answers
from bertwright.init.choose import Choice
from bertwright.init.draft import Request, is_modern
from bertwright.init.dump_sizes import DUMP_DATE, TEXT_DATE

CHANGE = (
    "Change any key here, or on the command line as key=value. To see what a key means:",
    "bertwright check --explain KEY",
)
"""The last lines of the comment."""
_LITTLE = 2_000_000
"""Bytes of text below which a network learns hardly anything."""


def head(request: Request, choice: Choice) -> str:
    """Return the comment above the first section."""
    answers, name = request.answers, wikis()[request.answers.language]
    family = "ModernBERT" if is_modern(request, choice.size) else "BERT"
    lines = [
        f"A {family}-{choice.size} from {'the Wikipedia' if request.own is None else 'texts of your own'} in {name} "
        f"({answers.language}), in {answers.hours:g} h "
        f"on {_machine(request)}.",
        "",
        *(f"  {word:<10} {line}" for word, lines in _facts(request, choice) for word, line in _indent(word, lines)),
        "",
        *CHANGE,
    ]
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def commands(request: Request) -> tuple[list[str], list[str]]:
    """Return the commands to type, in order: those that prepare the run, also from here, and those that run it where
    the machine is."""
    answers = request.answers
    graded = shlex.join([str(answers.out), *(["--place", str(answers.place)] if answers.place else [])])
    before = [f"bertwright check {graded}", f"bertwright plan {graded}"]
    if request.own is None:
        before.insert(0, f"bertwright corpus --download {answers.language}")
    return before, run_commands(answers.out, request.machine.ranks)


def run_commands(recipe: Path, ranks: int) -> list[str]:
    """Return the commands that run a recipe with so many ranks on this machine."""
    run = shlex.join([str(recipe), "--out", f"runs/{recipe.stem}"])
    if ranks == 1:
        return [f"bertwright run {run}"]
    # `run` trains with one process, so several ranks are started between the stages before and after them.
    ranks_train = f"torchrun --nproc-per-node {ranks} -m bertwright.cli train {run}"
    return [f"bertwright run {run} --until examples", ranks_train, f"bertwright run {run}"]


def place_text(answers: Answers, hardware: HardwareConfig) -> str:
    """Return the file of the place that describes the machine."""
    ranks = hardware.gpus if hardware.gpu else 1
    lines = [
        f"# The machine that {answers.out.name} is for. check, plan and launch read it (--place).",
        "",
        *(['kind = "torchrun"', f"ranks = {ranks}"] if ranks > 1 else ['kind = "local"']),
        "",
        "# Also memory_gb, cores, watts and price: see bertwright check --schema place.",
        "[hardware]",
        *([f'gpu = "{hardware.gpu}"', f"gpus = {hardware.gpus}"] if hardware.gpu else [f"cores = {hardware.cores}"]),
    ]
    return "\n".join(lines) + "\n"


def _facts(request: Request, choice: Choice) -> Iterator[tuple[str, list[str]]]:
    answers, plan = request.answers, choice.plan
    yield "commands", [line for lines in commands(request) for line in lines]
    yield "quality", [f"{answers.quality}: {QUALITIES[answers.quality]}"]
    yield "text", list(_text(request))
    yield "time", list(_time(choice))
    # 0 if it is unknown, as for GPUs of AMD.
    there = plan["machine"]["memory_bytes"]
    share = f" ({plan['memory_bytes'] / there:.0%})" if there else ""
    yield "memory", [f"{size_of(plan['memory_bytes'])} of each device while training{share}"]
    yield (
        "network",
        [f"{plan['parameters'] / 1e6:,.1f} million weights, about {plan['tokens_per_second']:,.0f} tokens/s"],
    )
    yield (
        "forecast",
        [
            "these times come from tables and may be off by a factor of two;",
            f"bertwright plan, as above, reads the {'dump once it is downloaded' if request.own is None else 'texts'}",
        ],
    )


def _text(request: Request) -> Iterator[str]:
    known, own, size = request.wiki, request.own, request.text_bytes
    if own is not None:
        yield f"{size_of(own.bytes)} in {pluralize(own.documents, 'document')}"
    elif size is None:
        yield "its size is unknown, so the hours do not include preparing it"
    else:
        yield f"{size_of(size)} in {known.articles:,} articles on {TEXT_DATE}"
    if size is not None and size < _LITTLE:
        yield "hardly enough text to learn a language: add other texts to corpus.source"
    if own is None:
        dump = known.dump_bytes
        known_size = "of unknown size" if dump is None else f"{size_of(dump)} on {DUMP_DATE}, larger by now"
        yield f"dump: {known_size}"
    if not spaced(request.answers.language):
        yield "written without spaces: the vocabulary finds the words between two spaces or punctuation marks"


def _time(choice: Choice) -> Iterator[str]:
    if choice.preparing is not None:
        yield f"corpus, vocabulary and examples {duration(3600 * choice.preparing)}"
    yield f"training {duration(3600 * choice.training)}, scores and export {duration(3600 * choice.finishing)}"


def _indent(word: str, lines: list[str]) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines):
        yield ("" if number else word), line


def _machine(request: Request) -> str:
    name = request.machine.device.name
    return request.machine.title.replace(name, name.upper()) if request.machine.device.gpu else request.machine.title
