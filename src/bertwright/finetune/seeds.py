"""Runs a drafted recipe with several seeds, and collects the scores as papers report them.

OUT/seed-1, OUT/seed-2, ...    the run folders; of a single run, OUT itself
OUT/scores.json                the scores of each seed; mean, sample standard deviation, least and greatest
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, TypedDict

from bertwright.core.errors import RecipeError
from bertwright.core.files import make_folder, write_json
from bertwright.core.log import SILENT, Log
from bertwright.finetune.draft import Draft
from bertwright.finetune.tasks import FinetuneTask
from bertwright.pipeline.run import run
from bertwright.tasks.classification.verdict import BASELINES, one_answer

SCORES = "scores.json"
_SHARED = ("vocab", "examples")
"""The stages whose results no seed of training changes."""


class SeedScores(TypedDict):
    """The scores of a run; an undefined correlation, that of a constant answer, is None."""

    seed: int
    folder: str
    scores: dict[str, float | None]
    collapsed: bool
    """Whether it gives one answer to everything, or none."""


class Spread(TypedDict):
    """A score over all runs, in which an undefined one counts as 0."""

    mean: float
    deviation: float | None
    """Sample standard deviation; None: there is one run."""
    least: float
    greatest: float
    baseline: float
    """The score of a constant answer: the commonest class of the training data, or the mean of its numbers."""


class Results(TypedDict):
    """The scores of a task."""

    task: str
    metric: str
    """The score that is published for the task; the others come after it."""
    runs: list[SeedScores]
    scores: dict[str, Spread]
    collapsed: int
    heldout: int
    """Held-out texts, or words."""


def finetune(draft: Draft, out: Path, seeds: int = 1, log: Log = SILENT) -> Results:
    """Run the draft in `out`, with the seeds 1 to `seeds` if these are several, and write and return the scores.

    What is finished is not run again. Raises `RecipeError` if the draft has a seed of its own beside several others,
    and whatever a run raises.
    """
    numbers = list(range(1, seeds + 1)) if seeds > 1 else [draft.recipe().train.seed]
    if seeds > 1 and "seed" in draft.values["train"]:
        raise RecipeError(f"--seeds {seeds} sets train.seed to 1 to {seeds}. Leave one of the two out.")
    folders = [out / f"seed-{number}" for number in numbers] if seeds > 1 else [out]
    found = []
    for number, folder in zip(numbers, folders, strict=True):
        if seeds > 1:
            log.say(f"finetune: seed {number} of {seeds}")
        _share(folders[0], folder)
        found.append(dict(run(draft.recipe(number), folder, log=log).scores))
    results = _results(draft.task, dict(zip(numbers, found, strict=True)), folders)
    write_json(out / SCORES, results)
    return results


def _share(first: Path, folder: Path) -> None:
    """Put the results that do not depend on the seed into another run folder, without a copy where links can be made;
    the run checks that they are its own."""
    for stage in _SHARED:
        if (first / stage).is_dir() and not (folder / stage).exists():
            # A name that a run removes if the copy was interrupted.
            incomplete = make_folder(folder) / f".{stage}.tmp"
            shutil.rmtree(incomplete, ignore_errors=True)
            shutil.copytree(first / stage, incomplete, copy_function=_link)
            incomplete.rename(folder / stage)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, target)


def _results(task: FinetuneTask, found: Mapping[int, Mapping[str, Any]], folders: Sequence[Path]) -> Results:
    scores = list(found.values())
    # Labels of one's own may be numbers.
    names = task.metrics if task.metrics[0] in scores[0] else ("pearson", "spearman")
    runs = [
        SeedScores(
            seed=seed,
            folder=str(folder),
            scores={name: each[name] for name in names},
            collapsed=_collapsed(each, names),
        )
        for (seed, each), folder in zip(found.items(), folders, strict=True)
    ]
    return Results(
        task=task.name,
        metric=names[0],
        runs=runs,
        scores={name: _spread(name, scores) for name in names},
        collapsed=sum(each["collapsed"] for each in runs),
        heldout=scores[0].get("predictions", scores[0]["sequences"]),
    )


def _collapsed(scores: Mapping[str, Any], names: Sequence[str]) -> bool:
    """Whether a model gives one answer to everything; `untrained` of a tagger says so, of a classifier it says more."""
    if any(scores[name] is None for name in names):
        return True
    return one_answer(scores) if "tagging_loss" not in scores else bool(scores["untrained"])


def _spread(name: str, scores: Sequence[Mapping[str, Any]]) -> Spread:
    values = [float(each[name] or 0.0) for each in scores]
    return Spread(
        mean=fmean(values),
        deviation=stdev(values) if len(values) > 1 else None,
        least=min(values),
        greatest=max(values),
        baseline=float(scores[0].get(BASELINES.get(name, ""), 0.0)),
    )
