"""`run` and one verb per stage, and what `corpus` and `vocab`, which have more options, share with these."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from bertwright.cli.completion import complete_override, complete_recipe, complete_stage
from bertwright.cli.options import (
    Json,
    OutOrPage,
    Run,
    Scale,
    load_at_scale,
    load_recipe,
    option_groups,
    refuse_useless,
    run_folders,
)
from bertwright.cli.terminal import Terminal
from bertwright.cli.text import json_line, visible
from bertwright.core.errors import RecipeError
from bertwright.core.files import read_json
from bertwright.core.resources import Kind, processors_of
from bertwright.core.work_split import WorkSplit
from bertwright.pipeline.run import run
from bertwright.pipeline.stage import STAGES
from bertwright.recipe import Recipe
from bertwright.shipped import is_run_folder

Profile = Annotated[
    int,
    typer.Option(metavar="N", min=0, max=1000, help="Number of training steps to profile: short for train.profile=N."),
]


@dataclass(frozen=True)
class Workers:
    """Which processes do the task lists of a stage."""

    rank: Annotated[
        int,
        typer.Option(
            metavar="N", help="Number of this process, from 0, among the --world processes that share the stage."
        ),
    ] = 0
    world: Annotated[
        int, typer.Option(metavar="N", help="Number of processes, on all machines, that share the stage.")
    ] = 1
    dask: Annotated[str, typer.Option("--dask", metavar="ADDRESS", help="Scheduler of the Dask workers to use.")] = ""

    def given(self) -> dict[str, bool]:
        """Whether each of the options is given."""
        return {"--rank": self.rank != 0, "--world": self.world != 1, "--dask": bool(self.dask)}


@dataclass(frozen=True)
class Ranks:
    """Where the ranks of a training run, unless a launcher decides."""

    per_socket: Annotated[
        bool, typer.Option("--per-socket", help="One rank on each socket of this machine, bound to its cores.")
    ] = False
    per_node: Annotated[
        bool,
        typer.Option("--per-node", help="One rank on each memory node (NUMA) of this machine, bound to its cores."),
    ] = False

    def group_by(self) -> Kind | None:
        """What each get one rank (sockets or memory nodes), or None if no option is given."""
        if self.per_socket and self.per_node:
            raise RecipeError("--per-socket and --per-node exclude each other. Give one of them.")
        if self.per_socket:
            return "socket"
        return "node" if self.per_node else None


@option_groups
def run_command(
    of: Run,
    until: Annotated[
        str,
        typer.Option(
            autocompletion=complete_stage, metavar="STAGE", help="Stop after this stage: " + ", ".join(STAGES)
        ),
    ] = "report",
    profile: Profile = 0,
    scale: Scale = "",
    rehearsal: Annotated[
        bool, typer.Option("--rehearse", help="Try out each part at full size, two steps of each phase; keep nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """All stages, in the order the text travels; run it again to continue."""
    if rehearsal:
        refuse_useless(
            "with --rehearse", {"--until": until != "report", "--profile": profile != 0, "--scale": bool(scale)}
        )
        _rehearse(*load_recipe(of.recipe, of.overrides, of.out), as_json)
        return
    if until not in STAGES:
        raise RecipeError(f"--until {until}: there is no such stage; the stages are {', '.join(STAGES)}.")
    names = list(STAGES)
    stages = names[: names.index(until) + 1]
    _print_result(run_stages(_with_profile(of, profile), stages, scale=scale), stages, as_json)


@option_groups
def examples(of: Run, workers: Workers, as_json: Json = False) -> None:
    """Only this stage: shards and vocabulary to token store and pair plans."""
    run_and_print(of, ["examples"], as_json, workers)


@option_groups
def train(of: Run, ranks: Ranks, profile: Profile = 0, as_json: Json = False) -> None:
    """Only this stage: token store and plans to checkpoints and a model."""
    given = _with_profile(of, profile)
    if kind := ranks.group_by():
        _train_on_groups(given, kind, as_json)
    else:
        run_and_print(given, ["train"], as_json)


def report(
    recipe: Annotated[
        Path,
        typer.Argument(
            autocompletion=complete_recipe,
            metavar="RECIPE|RUN",
            help="A recipe as for the other stages, or a run folder.",
        ),
    ],
    others: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=complete_override, metavar="KEY=VALUE|RUN", help="Overrides, or more run folders."
        ),
    ] = None,
    out: OutOrPage = None,
    as_json: Json = False,
) -> None:
    """Only this stage: `report.html` and `summary.json`; or, of several run folders, a page that compares them."""
    if not is_run_folder(recipe) or all("=" in word for word in others or []):
        run_and_print(Run(recipe, others, out), ["report"], as_json)
        return
    from bertwright.report.comparison import write_comparison

    path, facts = write_comparison(run_folders(recipe, others or []), out or Path())
    print(json_line({"path": str(path), **facts}) if as_json else path)


def _rehearse(recipe: Recipe, folder: Path, as_json: bool) -> None:
    """Rehearse the recipe next to its run folder, print the outcome of each part, and exit with the code of the first
    that failed."""
    from bertwright.trial.rehearse import rehearse

    with Terminal() as log:
        planned, parts = rehearse(recipe, folder, log)
    code = next((part.code for part in parts if part.code), 0)
    if as_json:
        outcomes = [{"part": part.name, "outcome": part.outcome, "text": part.text} for part in parts]
        facts = {"text": planned.text, "ranks": planned.ranks, "left_out": list(planned.left_out)}
        print(json_line({"ok": not code, **facts, "parts": outcomes}))
    else:
        width, outcome = max(len(part.name) for part in parts), max(len(part.outcome) for part in parts)
        for part in parts:
            print(visible(f"{part.name:<{width}}  {part.outcome:<{outcome}}  {part.text}"))
        for reason in dict.fromkeys(planned.left_out.values()):
            keys = (key for key, why in planned.left_out.items() if why == reason)
            print(f"not tried, because {reason}: {', '.join(keys)}")
    if code:
        raise typer.Exit(code)


def _train_on_groups(of: Run, kind: Kind, as_json: bool) -> None:
    """Train with a rank on each socket or memory node of this machine, and print where the result is."""
    from bertwright.cli.per_socket import refuse_other_ranks, train_on

    loaded, folder = load_recipe(of.recipe, of.overrides, of.out)
    refuse_other_ranks(loaded)
    where = processors_of(kind)
    with Terminal() as log:
        shown = ", ".join(f"{group.name} ({group.cores})" for group in where)
        log.say(f"train: one rank on each {kind}, bound to its cores: {shown}")
    train_on(where, ["train", str(of.recipe), *(of.overrides or []), "--out", str(folder)])
    _print_result(folder, ["train"], as_json)


def _with_profile(of: Run, steps: int) -> Run:
    return replace(of, overrides=[*(of.overrides or []), f"train.profile={steps}"]) if steps else of


@option_groups
def export(
    of: Run,
    page: Annotated[
        bool,
        typer.Option("--page", help="Also write page.html: one file with the model inside, which any browser opens."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Only this stage: the Hugging Face folder, checked by loading it back."""
    if not page:
        run_and_print(of, ["export"], as_json)
        return
    from bertwright.serve.inside.page import refuse_missing, write_page

    refuse_missing()
    folder = run_stages(of, ["export"])
    written = folder / "page.html"
    with Terminal() as log:
        note = {"folder": str(folder), "page": str(written), **write_page(folder, written, log)}
    print(json_line(note) if as_json else written)


def run_and_print(of: Run, stages: Sequence[str], as_json: bool, workers: Workers = Workers()) -> None:
    """Run the stages, and print where the result is; with --json, also the numbers of the report."""
    _print_result(run_stages(of, stages, workers), stages, as_json)


def _print_result(folder: Path, stages: Sequence[str], as_json: bool) -> None:
    """Print where the result in this run folder is; with --json, also the numbers of the report."""
    summary = folder / "summary.json"
    result = folder / ("report.html" if "report" in stages else stages[-1])
    if as_json:
        done = read_json(summary) if "report" in stages else {"stages": stages}
        print(json_line({"folder": str(folder), **done}))
    elif result.exists():  # not yet, if other ranks share the stage
        print(result)


def run_stages(of: Run, stages: Sequence[str], workers: Workers = Workers(), scale: str = "") -> Path:
    """Run the stages; returns the run folder."""
    from bertwright.core.dask import Dask

    recipe, folder, replaced = load_at_scale(of.recipe, of.overrides, of.out, scale)
    dask, split = Dask(workers.dask) if workers.dask else None, WorkSplit(workers.rank, workers.world)
    # A package that prints, such as DeepSpeed, would spoil the result, which a program may read.
    with Terminal() as log, redirect_stdout(sys.stderr):
        for line in replaced:
            log.say(f"scale: {line}")
        ran = run(recipe, folder, stages, log, dask, split).path
        if recipe.train.expected and "train" in stages:
            _warn_of_losses(folder, log)
    # As the user wrote it, so that a relative path can be typed again.
    return folder if ran == folder.absolute() else ran  # an unfinished training may have its own folder


def _warn_of_losses(folder: Path, log: Terminal) -> None:
    """Repeat the warnings of training about losses outside the bands of the recipe."""
    # Imported lazily: the other stages need nothing that training imports.
    from bertwright.train.monitor.expected import OUTSIDE
    from bertwright.train.monitor.metrics import read_rows

    for row in read_rows(folder / "train" / "metrics.jsonl"):
        if OUTSIDE in row:
            log.say(f"warning: {row[OUTSIDE]}")
