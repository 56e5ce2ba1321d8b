"""`finetune`: train a model for a task, without a recipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertwright.cli.completion import complete_task
from bertwright.cli.options import Json, Overrides, folder_option, option_groups
from bertwright.cli.terminal import Terminal
from bertwright.cli.text import columns, json_line
from bertwright.core.config import expand_home

if TYPE_CHECKING:
    from bertwright.finetune.seeds import Results


@dataclass(frozen=True)
class FinetuneRun:
    """What to train, from what, and where."""

    task: Annotated[
        str,
        typer.Argument(
            autocompletion=complete_task,
            metavar="TASK",
            help="A task of GLUE (cola, sst2, mrpc, qqp, stsb, mnli, mnli-mm, qnli, rte, wnli) or HuLU (hucola, hurte, "
            "huwnli, hucb); ner or pos; or classify, for labelled texts of your own.",
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
    show: Annotated[bool, typer.Option("--print", help="Print the recipe and run nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Train a model for a task: classes of texts, entities, parts of speech; needs no recipe, and shows its own."""
    from bertwright.finetune.draft import draft

    model = expand_home(of.model)
    drafted = draft(of.task, model, of.data and expand_home(of.data), of.overrides or [])
    if show:
        drafted.recipe()
        print(drafted.text, end="")
        return
    from bertwright.finetune.seeds import finetune as run_seeds

    folder = of.out or Path("runs") / f"{of.task}-{model.resolve().name}"
    with Terminal() as log, redirect_stdout(sys.stderr):
        for sentence in drafted.found:
            log.say(f"finetune: {sentence}")
        results = run_seeds(drafted, folder, seeds, log)
    if as_json:
        print(json_line({"folder": str(folder), **results}))
    else:
        print(*_lines(results), folder, sep="\n")


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
        rows.append(("mean", *(f"{each['mean']:.4f} ± {each['deviation']:.4f}" for each in spreads), ""))
        rows.append(("least", *(_shown(each["least"]) for each in spreads), ""))
        rows.append(("greatest", *(_shown(each["greatest"]) for each in spreads), ""))
    rows.append(("constant answer", *(_shown(each["baseline"]) for each in spreads), ""))
    yield from columns(("seed", *heads, ""), rows)
    if len(results["runs"]) > 1:
        runs = len(results["runs"])
        yield f"{results['task']}: {results['collapsed']} of {runs} runs collapsed; ± is the sample standard deviation"


def _shown(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"
