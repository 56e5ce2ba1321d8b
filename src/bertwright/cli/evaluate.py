"""`evaluate`: the stage; or, with `--suite`, exams of one or several models, from anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from bertwright.cli.completion import complete_override, complete_recipe
from bertwright.cli.exam_tables import curve_tables, score_tables
from bertwright.cli.options import Json, Run, folder_option, option_groups, refuse_out, refuse_useless
from bertwright.cli.stages import run_and_print
from bertwright.cli.suite_table import print_suite
from bertwright.cli.terminal import Terminal
from bertwright.cli.text import json_line
from bertwright.core.errors import RecipeError
from bertwright.core.files import write_json
from bertwright.shipped import is_run_folder


@dataclass(frozen=True)
class Evaluated:
    """What to score: a recipe's run, or models."""

    recipe: Annotated[
        Path,
        typer.Argument(
            autocompletion=complete_recipe,
            metavar="RECIPE|MODEL",
            help="A recipe as for the other stages; with --suite a model: a run, or a folder as transformers saves it.",
        ),
    ]
    others: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=complete_override, metavar="KEY=VALUE|MODEL", help="Overrides; with --suite more models."
        ),
    ] = None
    out: Annotated[
        Path | None,
        folder_option(
            "The run folder; default: runs/<name of the recipe>. With --suite: a JSON file of the scores; of `glue` "
            "and `hulu` the folder of the runs, default: runs/<name of the suite>"
        ),
    ] = None


@dataclass(frozen=True)
class Exams:
    """Which exams to take, and with what."""

    suite: Annotated[
        str,
        typer.Option(
            metavar="quick|wiki|retrieval|sts|probes|glue|hulu|FILE",
            help="Take exams instead: `quick`, `wiki` and `retrieval` are made from held-out documents of a run, `sts` "
            "and `probes` from --data, FILE.toml names others; or fine-tune the models for the tasks of `glue` or "
            "`hulu`.",
        ),
    ] = ""
    on: Annotated[
        Path | None, typer.Option(metavar="RUN", help="The run whose held-out documents make the exams of --suite.")
    ] = None
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="The folder of tagged words (CoNLL-U and others) and minimal pairs for `probes` and `quick`, or of "
            "the tasks of `glue` or `hulu`, by their names; the file of pairs for `retrieval`, of scores for `sts`.",
        ),
    ] = None
    seeds: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="Runs for each task of `glue` or `hulu`, seeds 1 to N.")
    ] = 1
    checkpoints: Annotated[
        bool,
        typer.Option("--checkpoints", help="Score all checkpoints of one run; its report draws the curves."),
    ] = False
    untrained: Annotated[
        bool,
        typer.Option("--untrained", help="Also score the network of the first model with random weights."),
    ] = False

    @property
    def given(self) -> dict[str, bool]:
        """The options that need a suite, and whether they are given."""
        return {"--data": self.data is not None, "--seeds": self.seeds > 1, **self.given_for_exams}

    @property
    def given_for_exams(self) -> dict[str, bool]:
        """Those that need exams, not tasks."""
        return {"--on": self.on is not None, "--checkpoints": self.checkpoints, "--untrained": self.untrained}


@option_groups
def evaluate(of: Evaluated, exams: Exams, as_json: Json = False) -> None:
    """Only this stage: held-out scores and sample predictions; with --suite, exams of models."""
    if not exams.suite:
        refuse_useless("without --suite", exams.given)
        run_and_print(Run(of.recipe, of.others, of.out), ["evaluate"], as_json)
        return
    from bertwright.finetune.suites import SUITES  # not at each start: the stage needs none of them

    models = [str(of.recipe), *(of.others or [])]
    if exams.suite in SUITES:
        refuse_useless(f"with --suite {exams.suite}", exams.given_for_exams)
        print_suite(exams.suite, models, exams.data, of.out or Path("runs") / exams.suite, exams.seeds, as_json)
        return
    refuse_useless(f"with --suite {exams.suite}", {"--seeds": exams.seeds > 1})
    if exams.checkpoints:
        refuse_useless("with --checkpoints", {"--untrained": exams.untrained})
        if len(models) > 1 or not is_run_folder(of.recipe):
            raise RecipeError(f"--checkpoints scores one run, not {', '.join(models)}. Give the folder of a run.")
    from bertwright.exams.suite import named_suite, score_models

    if of.out is not None:
        refuse_out(of.out, Path(exams.suite), exams.data)
    found: Any
    with Terminal() as log:
        suite = named_suite(exams.suite, of.recipe, exams.data, exams.on)
        if exams.checkpoints:
            from bertwright.exams.checkpoints import score_checkpoints

            found = score_checkpoints(of.recipe, exams.suite, suite, log)
            lines = curve_tables(found, of.recipe)
        else:
            scores = score_models(models, suite, log, exams.untrained)
            found = {model: [score.to_json() for score in each] for model, each in scores.items()}
            lines = score_tables(scores)
    if of.out is not None:
        write_json(of.out, found)
    if as_json:
        print(json_line(found))
    else:
        print(*lines, sep="\n")
