"""Runs a drafted recipe with several seeds, and collects the scores as papers report them.

OUT/seed-1, OUT/seed-2, ...    the run folders; of a single run, OUT itself
OUT/scores.json                the scores of each seed; mean, sample standard deviation, least and greatest
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, TypedDict

from bertwright.core.errors import RecipeError
from bertwright.core.files import link_or_copy, make_folder, write_json
from bertwright.core.log import SILENT, Log
from bertwright.finetune.draft import Draft
from bertwright.finetune.tasks import FinetuneTask
from bertwright.pipeline.lineage import matching_artifacts
from bertwright.pipeline.run import run
from bertwright.pipeline.run_folder import RunFolder
from bertwright.recipe import Recipe
from bertwright.tasks.classification.verdict import BASELINES, one_answer
from bertwright.tasks.section import epochs_of
from bertwright.tasks.shapes import Epochs

SCORES = "scores.json"
_SHARED = ("vocab", "examples")
"""The stages whose results are used again where they do not change."""


class SeedScores(TypedDict):
    """The scores of a run; an undefined correlation, that of a constant answer, is None."""

    seed: int
    folder: str
    scores: dict[str, float | None]
    collapsed: bool
    """Whether it gives one answer to everything, or none."""
    epochs: Epochs | None
    """The official score after the last and the best epoch; None if training took no such score."""


class Spread(TypedDict):
    """A score over all runs, in which an undefined one counts as 0."""

    mean: float
    deviation: float | None
    """Sample standard deviation; None: there is one run."""
    least: float
    greatest: float
    baseline: float | None
    """The score of a constant answer: the commonest class of the training data, the mean of its numbers, or none to any
    question; None: it is no score, but a setting that was tuned."""


class Results(TypedDict):
    """The scores of a task."""

    task: str
    metric: str
    """The score that is published for the task; the others come after it."""
    runs: list[SeedScores]
    scores: dict[str, Spread]
    collapsed: int
    learning_rate: float
    heldout: int
    """Held-out texts, words or questions."""


def finetune(draft: Draft, out: Path, seeds: int = 1, log: Log = SILENT) -> Results:
    """Run the draft in `out`, with the seeds 1 to `seeds` if these are several, and write and return the scores.

    What is finished is not run again. Raises `RecipeError` if the draft has a seed of its own beside several others,
    `ArtifactError` if an exported model scores otherwise than the trained one, and whatever a run raises.
    """
    numbers = seeds_of(draft, seeds)
    folders = {number: out / f"seed-{number}" for number in numbers} if seeds > 1 else {numbers[0]: out}
    results = run_seeds(draft, folders, [], log)
    write_json(out / SCORES, results)
    return results


def seeds_of(draft: Draft, seeds: int) -> list[int]:
    """The seeds of the runs; raises `RecipeError` as `finetune`."""
    if seeds == 1:
        return [draft.recipe().train.seed]
    if "seed" in draft.values["train"]:
        raise RecipeError(f"--seeds {seeds} sets train.seed to 1 to {seeds}. Leave one of the two out.")
    return list(range(1, seeds + 1))


def run_seeds(draft: Draft, folders: Mapping[int, Path], earlier: list[Path], log: Log) -> Results:
    """Run the draft in a folder for each seed. Vocabulary and examples are taken from the folders `earlier` that have
    the same; the new folders are added to these."""
    from bertwright.finetune.saved_model import rescore  # loads torch, which the recipe alone does not need

    found = []
    for number, folder in folders.items():
        if len(folders) > 1:
            log.say(f"finetune: seed {number} of {len(folders)}")
        recipe = draft.recipe(number)
        _share(earlier, recipe, folder)
        scores = dict(run(recipe, folder, log=log).scores)
        rescore(recipe, folder, metrics_of(draft.task, scores), log)
        found.append(scores)
        earlier.append(folder)
    return _results(draft, dict(zip(folders, found, strict=True)), list(folders.values()))


def _share(earlier: Sequence[Path], recipe: Recipe, folder: Path) -> None:
    """Put the results of an earlier run that the recipe would make again into another run folder, without a copy where
    links can be made."""
    if all((folder / stage).exists() for stage in _SHARED):
        return
    for stage in _SHARED:
        first = next((each for each in earlier if stage in matching_artifacts(recipe, each)), None)
        if first is not None and not (folder / stage).exists():
            # A name that a run removes if the copy was interrupted.
            incomplete = make_folder(folder) / f".{stage}.tmp"
            shutil.rmtree(incomplete, ignore_errors=True)
            shutil.copytree(first / stage, incomplete, copy_function=link_or_copy)
            incomplete.rename(folder / stage)


def metrics_of(task: FinetuneTask, scores: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the scores that are published for the task, as far as a run has them."""
    # Labels of one's own may be several or numbers, and questions may all have an answer.
    if "f1_micro" in scores:
        return "f1_micro", "f1_macro", "accuracy"
    names = task.metrics if task.metrics[0] in scores else ("pearson", "spearman")
    return (*names, "threshold") if "threshold" in scores else names


def _results(draft: Draft, found: Mapping[int, Mapping[str, Any]], folders: Sequence[Path]) -> Results:
    scores = list(found.values())
    names = metrics_of(draft.task, scores[0])
    runs = [
        SeedScores(
            seed=seed,
            folder=str(folder),
            scores={name: each[name] for name in names},
            collapsed=_collapsed(each, names),
            epochs=epochs_of(RunFolder(folder).metrics, names[0]),
        )
        for (seed, each), folder in zip(found.items(), folders, strict=True)
    ]
    return Results(
        task=draft.task.name,
        metric=names[0],
        runs=runs,
        scores={name: _spread(name, scores) for name in names},
        collapsed=sum(each["collapsed"] for each in runs),
        learning_rate=float(draft.values["train"]["phases"][0]["learning_rate"]),
        heldout=next(scores[0][name] for name in ("predictions", "questions", "sequences") if name in scores[0]),
    )


def _collapsed(scores: Mapping[str, Any], names: Sequence[str]) -> bool:
    """Whether a model gives one answer to everything; `untrained` of a tagger, or of a model that answers questions,
    says so, of a classifier it says more."""
    if any(scores[name] is None for name in names):
        return True
    classifies = "answered" in scores or "regression_loss" in scores
    return one_answer(scores) if classifies else bool(scores["untrained"])


def _spread(name: str, scores: Sequence[Mapping[str, Any]]) -> Spread:
    values = [float(each[name] or 0.0) for each in scores]
    return Spread(
        mean=fmean(values),
        deviation=stdev(values) if len(values) > 1 else None,
        least=min(values),
        greatest=max(values),
        baseline=None if name == "threshold" else _baseline(name, scores[0]),
    )


def _baseline(name: str, scores: Mapping[str, Any]) -> float:
    """What a constant answer scores; one that is no answer has the same F1 as exact match."""
    return float(scores.get("majority" if "questions" in scores else BASELINES.get(name, ""), 0.0))
