"""`evaluate`: the stage; or, with `--suite`, exams of one or several models, from anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertwright.cli.completion import complete_override, complete_recipe
from bertwright.cli.options import Json, Run, folder_option, option_groups, refuse_useless
from bertwright.cli.stages import run_and_print
from bertwright.cli.suite_table import BENCHMARKS, print_suite
from bertwright.cli.terminal import Terminal
from bertwright.cli.text import columns, json_line, terminal_width, wrap
from bertwright.core.errors import RecipeError
from bertwright.core.files import write_json
from bertwright.pipeline.run_folder import RunFolder, recorded_recipe
from bertwright.shipped import is_run_folder

if TYPE_CHECKING:
    from bertwright.exams.exam import Exam, Score


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


@option_groups
def evaluate(
    of: Evaluated,
    suite: Annotated[
        str,
        typer.Option(
            metavar="quick|wiki|glue|hulu|FILE",
            help="Take exams instead: `quick` and `wiki` are made from held-out documents of a run, FILE.toml names "
            "others; or fine-tune the models for the tasks of `glue` or `hulu`.",
        ),
    ] = "",
    on: Annotated[
        Path | None, typer.Option(metavar="RUN", help="The run whose held-out documents make the exams of --suite.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="A folder of the tasks of `glue` or `hulu`, by their names.")
    ] = None,
    seeds: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="Runs for each task of `glue` or `hulu`, seeds 1 to N.")
    ] = 1,
    as_json: Json = False,
) -> None:
    """Only this stage: held-out scores and sample predictions; with --suite, exams of models."""
    if not suite:
        refuse_useless("without --suite", {"--on": on is not None, "--data": data is not None, "--seeds": seeds > 1})
        run_and_print(Run(of.recipe, of.others, of.out), ["evaluate"], as_json)
        return
    models = [str(of.recipe), *(of.others or [])]
    if suite in BENCHMARKS:
        refuse_useless(f"with --suite {suite}", {"--on": on is not None})
        print_suite(suite, models, data, of.out or Path("runs") / suite, seeds, as_json)
        return
    refuse_useless(f"with --suite {suite}", {"--data": data is not None, "--seeds": seeds > 1})
    with Terminal() as log:
        exams = _exams(suite, on or Path(models[0]))
        from bertwright.exams.suite import score_models

        scores = score_models(models, exams, log)
    if of.out is not None:
        write_json(of.out, {model: [score._asdict() for score in found] for model, found in scores.items()})
    if as_json:
        print(json_line({model: [score._asdict() for score in found] for model, found in scores.items()}))
        return
    print(*_lines(scores), "", *_readings(scores), sep="\n")


def _exams(suite: str, run: Path) -> Sequence[Exam]:
    """The exams of a suite, by its name or from its file."""
    if suite.endswith(".toml"):
        from bertwright.exams.suite import Suite

        return Suite.load(Path(suite)).exam
    if suite not in ("quick", "wiki"):
        raise RecipeError(f"--suite {suite}: there is no such suite. Give quick, wiki or the path of a .toml.")
    if not is_run_folder(run):
        raise RecipeError(f"--suite {suite} is made from a run, which {run} is not. Name one: --on RUN.")
    recipe, _ = recorded_recipe(run)
    if recipe.corpus is None:
        raise RecipeError(f"{run} has no corpus, so no held-out documents. Name another run: --on RUN.")
    from bertwright.exams.quick import quick_suite, wiki_suite

    make = quick_suite if suite == "quick" else wiki_suite
    return make(RunFolder(run).artifact("corpus"), recipe.examples.heldout)


def _lines(scores: dict[str, list[Score]]) -> Iterator[str]:
    """A table with a row for each score, and a column for each model."""
    first: dict[tuple[str, str], Score] = {}
    for found in scores.values():
        for score in found:
            first.setdefault((score.exam, score.name), score)
    by_model = [{(score.exam, score.name): score for score in found} for found in scores.values()]
    rows = []
    for (exam, name), one in first.items():
        chance = "" if one.chance is None else _shown(one, one.chance)
        rows.append((exam, name, chance, *(_cell(found.get((exam, name))) for found in by_model)))
    yield from columns(("exam", "score", "chance", *(Path(model).name for model in scores)), rows, words=2)


def _readings(scores: dict[str, list[Score]]) -> Iterator[str]:
    """How to read the scores, a line for each that has a reading, and the intervals."""
    said = dict.fromkeys((score.exam, score.healthy) for found in scores.values() for score in found)
    names = {
        each: ", ".join(
            dict.fromkeys(s.name for found in scores.values() for s in found if (s.exam, s.healthy) == each)
        )
        for each in said
    }
    for exam, healthy in said:
        if healthy:
            yield from wrap(f"{exam}: ", f"{names[exam, healthy]}: {healthy}", terminal_width())
    yield from wrap("", "±: half of the interval that holds 95 of 100 exams with other items.", terminal_width())


def _cell(score: Score | None) -> str:
    if score is None:
        return "–"
    value = _shown(score, score.value)
    if score.interval is None:
        return value
    return f"{value} ± {_shown(score, (score.interval[1] - score.interval[0]) / 2)}"


def _shown(score: Score, value: float) -> str:
    return f"{100 * value:.1f}" if score.share else f"{value:.3g}"
