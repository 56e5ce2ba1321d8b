"""`launch`: run the same recipe on another machine, a cluster or a cloud; prints the job, and submits it on request.
`launch upload`: copy a run folder, or parts of it, to a remote address."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from bertwright.cli.completion import complete_target
from bertwright.cli.options import Json, Run, option_groups, place_option
from bertwright.cli.terminal import Terminal
from bertwright.cli.text import json_line, visible
from bertwright.core.errors import RecipeError
from bertwright.core.numbers import size_of
from bertwright.launch.job import Job, load_job
from bertwright.launch.target import (
    DescribedOnly,
    Description,
    Scheduler,
    Submitter,
    Target,
    describe,
    read_submission,
    submit,
)

TargetName = Annotated[
    str,
    typer.Argument(
        autocompletion=complete_target,
        metavar="TARGET",
        help="local, torchrun, slurm, azureml, container, kubeflow or skypilot.",
    ),
]

Parts = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PART",
        help="corpus, vocab, examples, checkpoints (the newest and the best), train, evaluate, export, report; without "
        "any: all that are finished.",
    ),
]


@dataclass(frozen=True)
class Place:
    """Where to run: a file, and settings that override it."""

    place: Annotated[
        str,
        place_option("A TOML file, or the name of one that `bertwright places` lists."),
    ] = ""
    nodes: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Number of machines that train: short for --set nodes=N.")
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A key of the place, as in its file; repeatable."),
    ] = None
    shell: Annotated[
        bool,
        typer.Option("--shell", help="Start a shell in the container instead of the run: short for --set shell=true."),
    ] = False

    def given(self) -> list[str]:
        """The settings, including those that have their own option."""
        short = [*([f"nodes={self.nodes}"] if self.nodes else []), *(["shell=true"] if self.shell else [])]
        return [*(self.settings or []), *short]


@dataclass(frozen=True)
class Action:
    """What to do with the job."""

    submit: Annotated[
        bool, typer.Option("--submit", help="Submit the job, or write its files if you submit it yourself.")
    ] = False
    status: Annotated[bool, typer.Option("--status", help="Print the state of the submitted jobs.")] = False
    logs: Annotated[bool, typer.Option("--logs", help="Print the last lines of the logs of the submitted jobs.")] = (
        False
    )
    stop: Annotated[bool, typer.Option("--stop", help="Stop the submitted jobs; training saves first.")] = False

    def name(self) -> str:
        """The action that is given, or "describe" if there is none; `RecipeError` if there are several."""
        given = [name for name, wanted in asdict(self).items() if wanted]
        if len(given) > 1:
            raise RecipeError("--submit, --status, --logs and --stop exclude each other. Give one of them.")
        return given[0] if given else "describe"


@option_groups
def launch(target: TargetName, of: Run, at: Place, action: Action, as_json: Json = False) -> None:
    """Print what running a recipe in some place would submit; or submit it, and look after it."""
    from bertwright.launch.config import load_place

    what = action.name()
    where = load_place(target, at.place, at.given())
    job = load_job(of.recipe, of.overrides or [], of.out, where.overrides, at.place)
    if what == "submit":
        _submit(where, job, as_json)
    elif what == "describe":
        _describe(describe(where, job), job, as_json)
    else:
        _monitor(where, job, what, as_json)


def upload(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    url: Annotated[str, typer.Argument(metavar="URL", help="Such as az://container/run or s3://bucket/run.")],
    parts: Parts = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Also read back what an earlier upload has finished.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Copy the finished parts of a run to remote storage; run it again to send what is missing there."""
    from bertwright.pipeline.parts import finished_parts
    from bertwright.transfer.upload import upload as send

    with Terminal() as log:
        sent = send(finished_parts(run, parts or [], log), url, log, verify)
    if as_json:
        print(json_line(asdict(sent)))
    else:
        print(f"{sent.url}: {', '.join(sent.parts)}")
        sizes = f"{size_of(sent.bytes)} were sent, {size_of(sent.there_before)} were there before"
        print(f"{sizes}, {sent.files:,} files sent")


def _describe(description: Description, job: Job, as_json: bool) -> None:
    if as_json:
        facts = {"files": dict(description.files), "wheel": description.wheel}
        print(json_line({**facts, "commands": list(description.commands), "note": description.note}))
        return
    for name, text in description.files.items():
        print(f"=== {job.folder / name}", visible(text), sep="\n")
    if description.wheel:
        print(f"=== {job.folder / description.wheel}", "(this bertwright as a wheel)", "", sep="\n")
    print("=== commands", *map(visible, description.commands), sep="\n")
    _print_note(description.note)


def _print_note(note: str) -> None:
    if note:
        print(f"=== {visible(note)}")


def _submit(where: Target, job: Job, as_json: bool) -> None:
    with Terminal() as log, _reserve_output() if as_json else nullcontext():
        sent = submit(where, job, log)
    described = describe(where, job)
    # The user submits what bertwright does not submit itself.
    commands = [] if isinstance(where, Submitter) else list(described.commands)
    if as_json:
        facts = {"folder": str(sent.folder), "jobs": dict(sent.jobs), "commands": commands, "note": described.note}
        print(json_line(facts))
    elif commands:
        print(
            f"=== written to {sent.folder}, nothing is submitted yet. Run these commands:",
            *map(visible, commands),
            sep="\n",
        )
        _print_note(described.note)
    else:
        print(sent.folder)


@contextmanager
def _reserve_output() -> Iterator[None]:
    """Reserve standard output for the JSON: commands that run here write to standard error, and
    a failure is reported."""
    sys.stdout.flush()
    # The file descriptor, because the commands that run here inherit it, and not sys.stdout.
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    except SystemExit as ended:
        os.dup2(kept, 1)
        message = f"a command ended with code {ended.code}. Look at its messages on standard error."
        print(json_line({"error": {"code": ended.code, "message": message, "hint": message.partition(". ")[2]}}))
        raise
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _monitor(where: Target, job: Job, what: str, as_json: bool) -> None:
    if isinstance(where, DescribedOnly):
        raise RecipeError(
            f"--{what}: launch {where.kind} submits nothing itself, so its jobs are not known here. Where you "
            f"submitted them, run: {where.monitoring_commands(job)[what]}"
        )
    if not isinstance(where, Scheduler):
        raise RecipeError(
            f"--{what}: launch {where.kind} runs its commands here and waits for them, so there are no submitted "
            f"jobs. Read what it printed, or inspect the run folder {job.out}."
        )
    sent = read_submission(where, job)
    match what:
        case "status":
            rows = where.status(sent)
            lines = [f"{row['job']:10} {row['id']:14} {row['state']:14} {row['why']}".rstrip() for row in rows]
            print(json_line({"jobs": rows}) if as_json else "\n".join(map(visible, lines)))
        case "logs":
            kept = where.logs(sent)
            shown = "\n".join(f"=== {name}\n{visible(text)}" for name, text in kept.items())
            print(json_line({"logs": kept}) if as_json else shown or "nothing has been printed yet")
        case _:
            where.stop(sent)
            print(json_line({"stopped": dict(sent.jobs)}) if as_json else f"stopped {', '.join(sent.jobs)}")
