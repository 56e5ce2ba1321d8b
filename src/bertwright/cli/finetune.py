"""`finetune`: train a model for a task, without a recipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertwright.cli.completion import complete_task
from bertwright.cli.options import Json, Overrides, folder_option, option_groups
from bertwright.cli.terminal import Terminal
from bertwright.cli.text import columns, json_line, terminal_width, wrap

if TYPE_CHECKING:
    from bertwright.finetune.draft import Draft
    from bertwright.finetune.grid import Grid, GridResults
    from bertwright.finetune.seeds import Results, Spread


@dataclass(frozen=True)
class FinetuneRun:
    """What to train, from what, and where."""

    task: Annotated[
        str,
        typer.Argument(
            autocompletion=complete_task,
            metavar="TASK",
            help="A task of GLUE (cola, sst2, mrpc, qqp, stsb, mnli, mnli-mm, qnli, rte, wnli) or HuLU (hucola, hurte, "
            "huwnli, hucb, hucopa); ner or pos; squad, for answers in texts; swag, copa or choice, for questions with "
            "choices; embed, for pairs of texts that belong together; or classify, for labelled texts of your own.",
        ),
    ]
    model: Annotated[
        Path, typer.Option("--model", metavar="RUN|FOLDER", help="The model to start from: a run, or transformers'.")
    ]
    overrides: Overrides = None
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="PATH", help="Folder or file of the data; a task of GLUE is found by its name."),
    ] = None
    out: Annotated[Path | None, folder_option("The folder of the runs; default: runs/TASK-<name of the model>")] = None


@option_groups
def finetune(
    of: FinetuneRun,
    seeds: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="Number of runs, with seeds 1 to N.")] = 1,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUES|usual",
            help="Values to compare, such as learning_rate=2e-5,3e-5; several keys are combined; `usual` is the grid "
            "of the papers.",
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--print", help="Print the recipe and run nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Train a model for a task: classes of texts, entities, parts of speech, answers; needs no recipe, and shows its
    own."""
    from bertwright.finetune.draft import draft
    from bertwright.finetune.grid import read_grid

    drafted = draft(of.task, of.model, of.data, of.overrides or [])
    values = read_grid(grid or [], drafted, of.overrides or [])
    if show:
        text = "\n".join(_recipe(drafted, values))
        print(json_line({"text": text}) if as_json else text)
        return
    folder = of.out or Path("runs") / f"{of.task}-{of.model.resolve().name}"
    results: Results | GridResults
    with Terminal() as log, redirect_stdout(sys.stderr):
        for sentence in drafted.found:
            log.say(f"finetune: {sentence}")
        if values:
            from bertwright.finetune.grid import run_grid

            results = compared = run_grid(drafted, values, folder, seeds, log)
            lines = _grid_lines(compared)
        else:
            from bertwright.finetune.seeds import finetune as run_seeds

            results = found = run_seeds(drafted, folder, seeds, log)
            lines = _lines(found)
    if as_json:
        print(json_line({"folder": str(folder), **results}))
    else:
        print(*lines, folder, sep="\n")


def _recipe(drafted: Draft, grid: Grid) -> Iterator[str]:
    """The recipe, of a grid that of its first point with the values of all."""
    from bertwright.finetune.grid import draft_at, points_of

    points = points_of(grid)
    first = draft_at(drafted, points[0])
    yield first.text.rstrip("\n")
    if grid:
        yield f"\n# The first of {len(points):,} points of a grid:"
        for key, values in grid.items():
            yield f"# {key} = {', '.join(values.value)}{f'  # {values.why}' if values.why else ''}"


def _lines(results: Results) -> Iterator[str]:
    """A table with a row for each run, then those of all runs."""
    names = list(results["scores"])
    heads = [f"{name} (official)" if name == results["metric"] else name for name in names]
    rows = [
        (str(each["seed"]), *(_shown(each["scores"][name]) for name in names), "collapsed" if each["collapsed"] else "")
        for each in results["runs"]
    ]
    spreads = results["scores"].values()
    if len(rows) > 1:
        rows.append(("mean", *map(_mean, spreads), ""))
        rows.append(("least", *(_shown(each["least"]) for each in spreads), ""))
        rows.append(("greatest", *(_shown(each["greatest"]) for each in spreads), ""))
    constant = ("" if each["baseline"] is None else _shown(each["baseline"]) for each in spreads)
    rows.append(("constant answer", *constant, ""))
    yield from columns(("seed", *heads, ""), rows)
    if len(results["runs"]) > 1:
        runs = len(results["runs"])
        yield f"{results['task']}: {results['collapsed']} of {runs} runs collapsed; ± is the sample standard deviation"
    yield from _epoch_lines(results)
    first = Path(results["runs"][0]["folder"])
    yield from wrap("", f"the worst errors, to read: {first / 'evaluate' / 'errors.jsonl'}", terminal_width())
    yield from _remedy([results])


def _epoch_lines(results: Results) -> Iterator[str]:
    """The best epoch of each run whose last one is another; the table has the scores of the last ones."""
    found = [(each["seed"], epochs) for each in results["runs"] if (epochs := each["epochs"]) is not None]
    better = [(seed, epochs) for seed, epochs in found if epochs["best"]["score"] > epochs["last"]["score"]]
    if not better:
        return
    shown = (
        f"{best['score']:.4f} after epoch {best['number']} of {epochs['last']['number']} (seed {seed})"
        for seed, epochs in better
        if (best := epochs["best"])
    )
    listed = f"{results['metric']} after the last epoch is in the table; after the best one it was {', '.join(shown)}"
    yield from wrap("", f"{listed}: {better[0][1]['note']}.", terminal_width())


def _grid_lines(found: GridResults) -> Iterator[str]:
    """A table with a row for each point, and the best one."""
    from bertwright.finetune.grid import short, shown

    points = found["points"]
    keys, names = list(points[0]["values"]), list(points[0]["results"]["scores"])
    rows = []
    for point in points:
        scores, runs = point["results"]["scores"], point["results"]["runs"]
        collapsed = f"{point['results']['collapsed']} of {len(runs)}"
        rows.append((*point["values"].values(), *(_mean(scores[name]) for name in names), collapsed))
    baselines = [points[0]["results"]["scores"][name]["baseline"] for name in names]
    constant = ("" if each is None else _shown(each) for each in baselines)
    rows.append(("constant", *[""] * (len(keys) - 1), *constant, ""))
    heads = [f"{name} (official)" if name == found["metric"] else name for name in names]
    yield from columns((*map(short, keys), *heads, "collapsed"), rows, words=len(keys))
    best = points[found["best"]]
    score = best["results"]["scores"][found["metric"]]
    yield from wrap("", f"best: {shown(best['values'])}: {found['metric']} {_mean(score)}", terminal_width())
    yield from wrap(
        "",
        "It was chosen by the held-out texts whose scores these are, which makes its score look better than it is: "
        "report it on other texts.",
        terminal_width(),
    )
    yield from _remedy([point["results"] for point in points])


def _mean(spread: Spread) -> str:
    deviation = spread["deviation"]
    return f"{spread['mean']:.4f}" + (f" ± {deviation:.4f}" if deviation is not None else "")


def _remedy(results: Sequence[Results]) -> Iterator[str]:
    """What to do about collapsed runs."""
    rates = [each["learning_rate"] for each in results if each["collapsed"]]
    if rates:
        lower = f"train.phases.0.learning_rate={min(rates) / 2:g}"
        yield from wrap(
            "",
            f"A collapsed run gives one answer to everything: try a lower rate ({lower}), more epochs, or other seeds.",
            terminal_width(),
        )


def _shown(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"
