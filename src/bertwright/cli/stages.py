"""`run` and a verb for each stage."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bertwright.cli.formatting import json_line
from bertwright.cli.options import (
    DOWNLOADS,
    Json,
    MaybeRecipe,
    Out,
    Overrides,
    RecipePath,
    Scale,
    load_at_scale,
    load_recipe,
    refuse_useless,
    run_folders,
)
from bertwright.cli.terminal import Terminal
from bertwright.core.errors import RecipeError
from bertwright.core.files import read_json
from bertwright.core.places import Kind, places
from bertwright.core.redact import redact_credentials
from bertwright.core.work_split import SINGLE, WorkSplit
from bertwright.pipeline.run import run
from bertwright.pipeline.stage import STAGES

Rank = Annotated[int, typer.Option(help="This process's number among --world that share the stage, from 0.")]
World = Annotated[int, typer.Option(help="How many processes, here or elsewhere, share the stage.")]
Profile = Annotated[
    int, typer.Option(min=0, max=1000, help="Profile so many steps of training: short for train.profile=N.")
]
DaskAddress = Annotated[str, typer.Option("--dask", metavar="ADDRESS", help="Scheduler of the Dask workers to use.")]


@dataclass(frozen=True)
class Workers:
    """Who does the task lists of a stage."""

    dask: str = ""
    """Address of a scheduler; "": processes on this machine."""
    share: WorkSplit = SINGLE


def run_command(
    recipe: RecipePath,
    overrides: Overrides = None,
    out: Out = None,
    until: Annotated[str, typer.Option(metavar="STAGE", help="Stop after this stage: " + ", ".join(STAGES))] = "report",
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
            "beside --rehearse", {"--until": until != "report", "--profile": profile != 0, "--scale": bool(scale)}
        )
        from bertwright.cli.rehearse import print_rehearsal

        print_rehearsal(*load_recipe(recipe, overrides, out), as_json)
        return
    if until not in STAGES:
        raise RecipeError(f"--until {until}: there is no such stage; the stages are {', '.join(STAGES)}.")
    names = list(STAGES)
    stages = names[: names.index(until) + 1]
    _print_result(_run(recipe, _with_profile(overrides, profile), out, stages, scale=scale), stages, as_json)


def corpus_command(
    recipe: MaybeRecipe = None,
    overrides: Overrides = None,
    out: Out = None,
    rank: Rank = 0,
    world: World = 1,
    dask: DaskAddress = "",
    dropped: Annotated[bool, typer.Option("--dropped", help="Print what was dropped, as JSON lines.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="With --dropped: at most so many documents.")] = None,
    download: Annotated[
        str, typer.Option(metavar="LANGUAGE", help="Only fetch the Wikipedia dump of this language, into --out.")
    ] = "",
    date: Annotated[str, typer.Option(metavar="YYYYMMDD", help="With --download: which dump.")] = "latest",
    mirror: Annotated[str, typer.Option(metavar="URL", help="With --download: instead of dumps.wikimedia.org.")] = "",
    invert: Annotated[bool, typer.Option("--invert", hidden=True)] = False,
    as_json: Json = False,
) -> None:
    """Only this stage: dump to sentence-per-line shards."""
    # The old name, hidden: a script of before is told the new one instead of "no such option".
    if invert:
        raise RecipeError("--invert is called --dropped now. Write --dropped.")
    if not download:
        refuse_useless("without --download", {"--date": date != "latest", "--mirror": bool(mirror)})
    if not dropped:
        refuse_useless("without --dropped", {"--limit": limit is not None})
    if download:
        refuse_useless("beside --download", {"RECIPE": recipe is not None, "--dropped": dropped})
        from bertwright.corpus.download import BASE, database
        from bertwright.corpus.download import download as fetch_dump

        with Terminal() as log:
            path = fetch_dump(download, date, out or DOWNLOADS, mirror or BASE, log)
        # The date of "latest" is known by the name of the file alone.
        folder = f"{database(download)}/{path.name.split('-')[1]}"
        _print_download(path, f"{mirror or BASE}/{folder}/{path.name}", as_json)
    elif recipe is None:
        raise RecipeError("give a recipe, or --download LANGUAGE to fetch a dump.")
    elif dropped:
        _print_dropped(_run(recipe, overrides, out, ["corpus"], Workers(dask, WorkSplit(rank, world))), limit)
    else:
        _run_and_print(recipe, overrides, out, ["corpus"], as_json, Workers(dask, WorkSplit(rank, world)))


def vocab_command(
    recipe: MaybeRecipe = None,
    overrides: Overrides = None,
    out: Out = None,
    download: Annotated[
        str, typer.Option(metavar="NAME", help="Only fetch google-uncased, google-cased or google-multilingual-cased.")
    ] = "",
    mirror: Annotated[str, typer.Option(metavar="URL", help="With --download: instead of huggingface.co.")] = "",
    as_json: Json = False,
) -> None:
    """Only this stage: shards to vocabulary."""
    if not download:
        refuse_useless("without --download", {"--mirror": bool(mirror)})
    if download:
        refuse_useless("beside --download", {"RECIPE": recipe is not None})
        from bertwright.vocab.download import HUB, PUBLISHED
        from bertwright.vocab.download import download as fetch_vocabulary

        with Terminal() as log:
            path = fetch_vocabulary(download, out or DOWNLOADS, log, mirror or HUB)
        source = f"{mirror or HUB}/{PUBLISHED[download].repository}/resolve/main/vocab.txt"
        _print_download(path, source, as_json)
    elif recipe is None:
        raise RecipeError("give a recipe, or --download NAME to fetch a published vocabulary.")
    else:
        _run_and_print(recipe, overrides, out, ["vocab"], as_json)


def examples_command(
    recipe: RecipePath,
    overrides: Overrides = None,
    out: Out = None,
    rank: Rank = 0,
    world: World = 1,
    dask: DaskAddress = "",
    as_json: Json = False,
) -> None:
    """Only this stage: shards and vocabulary to token store and pair plans."""
    _run_and_print(recipe, overrides, out, ["examples"], as_json, Workers(dask, WorkSplit(rank, world)))


def train_command(
    recipe: RecipePath,
    overrides: Overrides = None,
    out: Out = None,
    profile: Profile = 0,
    per_socket: Annotated[
        bool, typer.Option("--per-socket", help="One rank on each socket of this machine, bound to its cores.")
    ] = False,
    per_node: Annotated[
        bool, typer.Option("--per-node", help="One rank on each memory node (NUMA) of this machine, likewise.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Only this stage: token store and plans to checkpoints and a model."""
    given = _with_profile(overrides, profile)
    if per_socket and per_node:
        raise RecipeError("--per-socket and --per-node are two ways to place the same ranks. Give one of them.")
    if per_socket or per_node:
        _train_on_places(recipe, given, out, "socket" if per_socket else "node", as_json)
    else:
        _run_and_print(recipe, given, out, ["train"], as_json)


def report_command(
    recipe: Annotated[
        Path, typer.Argument(metavar="RECIPE|RUN", help="A recipe as for the other stages, or a run folder.")
    ],
    others: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE | RUN]...", help="Overrides, or more run folders.")
    ] = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Only this stage: `report.html` and `summary.json`; or, of several run folders, a page that compares them."""
    # Not any folder: one may have the name of a recipe that is shipped.
    if not (recipe / "recipe.toml").is_file():
        _run_and_print(recipe, others, out, ["report"], as_json)
        return
    from bertwright.report.comparison import write_comparison

    path, facts = write_comparison(run_folders(recipe, others or []), out or Path())
    print(json_line({"path": str(path), **facts}) if as_json else path)


def _train_on_places(recipe: Path, given: list[str], out: Path | None, kind: Kind, as_json: bool) -> None:
    """Train with a rank on each place of this machine, and print where the result lies."""
    from bertwright.cli.per_socket import refuse_other_ranks, train_on

    loaded, folder = load_recipe(recipe, given, out)
    refuse_other_ranks(loaded)
    where = places(kind)
    with Terminal() as log:
        shown = ", ".join(f"{place.name} ({place.cores})" for place in where)
        log.say(f"train: a rank on each {kind}, bound to its cores: {shown}")
    train_on(where, ["train", str(recipe), *given, "--out", str(folder)])
    _print_result(folder, ["train"], as_json)


def _with_profile(overrides: list[str] | None, steps: int) -> list[str]:
    return [*(overrides or []), *([f"train.profile={steps}"] if steps else [])]


def _stage_command(name: str) -> Callable[..., None]:
    def command(recipe: RecipePath, overrides: Overrides = None, out: Out = None, as_json: Json = False) -> None:
        _run_and_print(recipe, overrides, out, [name], as_json)

    about = STAGES[name].about
    command.__doc__ = f"Only this stage: {about[0].lower()}{about[1:]}"
    return command


VERBS: dict[str, Callable[..., None]] = {
    "run": run_command,
    "corpus": corpus_command,
    "vocab": vocab_command,
    "examples": examples_command,
    "train": train_command,
    **{name: _stage_command(name) for name in ("evaluate", "export")},
    "report": report_command,
}


def _print_download(path: Path, source: str, as_json: bool) -> None:
    """Print where the file lies: with --json, its size and where it came from as well."""
    facts = {"path": str(path), "bytes": path.stat().st_size, "source": redact_credentials(source)}
    print(json_line(facts) if as_json else path)


def _run_and_print(
    recipe: Path,
    overrides: list[str] | None,
    out: Path | None,
    stages: list[str],
    as_json: bool,
    workers: Workers = Workers(),
) -> None:
    """Run the stages, and print where the result lies: with --json, the numbers of the report beside it."""
    _print_result(_run(recipe, overrides, out, stages, workers), stages, as_json)


def _print_result(folder: Path, stages: list[str], as_json: bool) -> None:
    """Print where the result in this run folder lies: with --json, the numbers of the report beside it."""
    summary = folder / "summary.json"
    result = folder / ("report.html" if "report" in stages else stages[-1])
    if as_json:
        done = read_json(summary) if "report" in stages else {"stages": stages}
        print(json_line({"folder": str(folder), **done}))
    elif result.exists():  # not yet, where other ranks share the stage
        print(result)


def _run(
    recipe_path: Path,
    overrides: list[str] | None,
    out: Path | None,
    stages: list[str],
    workers: Workers = Workers(),
    scale: str = "",
) -> Path:
    """Run the stages; returns the run folder."""
    # Loaded with the stages, not at every start of the program.
    from bertwright.core.dask import Dask
    from bertwright.train.expected import OUTSIDE
    from bertwright.train.metrics import read_rows

    recipe, folder, replaced = load_at_scale(recipe_path, overrides, out, scale)
    with Terminal() as log:
        for line in replaced:
            log.say(f"scale: {line}")
        ran = run(recipe, folder, stages, log, Dask(workers.dask) if workers.dask else None, workers.share).path
        for row in read_rows(folder / "train" / "metrics.jsonl") if recipe.train.expected and "train" in stages else ():
            if OUTSIDE in row:
                log.say(f"warning: {row[OUTSIDE]}")
    # As the user wrote it: a relative path stays one that can be typed again.
    return folder if ran == folder.absolute() else ran  # of an unfinished training: a folder of its own


def _print_dropped(folder: Path, limit: int | None) -> None:
    from bertwright.core.artifact import open_artifact
    from bertwright.corpus.dropped import read_dropped

    corpus = open_artifact(folder / "corpus", "corpus")
    if not corpus.manifest["config"]["corpus"]["filter"]["keep_dropped"]:
        raise RecipeError("--dropped: corpus.filter.keep_dropped is off, so nothing was set aside. Turn it on.")
    for document in itertools.islice(read_dropped(corpus), limit):
        print(json_line(document))
