"""Fine-tunes models for all tasks of a benchmark that have data here, and compares them.

OUT/<model>/<task>/...   the runs of each task, as `finetune` makes them
OUT/suite.json           the scores of all models and tasks
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple, TypedDict

from bertwright.core.errors import RecipeError
from bertwright.core.files import write_json
from bertwright.core.log import SILENT, Log
from bertwright.examples.labelled.config import glue_folder
from bertwright.examples.own_files import TRAINING, named_files
from bertwright.finetune.draft import Draft, draft
from bertwright.finetune.seeds import Results, finetune
from bertwright.finetune.tasks import TASKS

SUITES: Mapping[str, tuple[str, ...]] = {
    # MNLI's dev_mismatched is scored by `finetune mnli-mm`; one training would be scored on both.
    "glue": ("cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte", "wnli"),
    "hulu": tuple(name for name in TASKS if name.startswith("hu")),
}
"""The tasks of each suite, in the order of papers."""
NOT_AVERAGED = ("wnli",)
"""Devlin et al. 2019 leave WNLI out of the mean: its dev set is adversarial."""
_FOLDERS = {"hucommitmentbank": "hucb"}
"""Other names of folders, without capitals and punctuation."""


class Published(NamedTuple):
    """Published scores of a model, in percent."""

    model: str
    source: str
    split: str
    scores: Mapping[str, float]


_MINIATURES = "google-research/bert"
PUBLISHED: Mapping[str, Sequence[Published]] = {
    "glue": (
        *(
            Published(name, _MINIATURES, "test", dict(zip(SUITES["glue"][:-1], scores, strict=True)))
            for name, scores in {
                "BERT-Tiny": (0.0, 83.2, 81.1, 74.3, 62.2, 70.2, 81.5, 57.2),
                "BERT-Mini": (0.0, 85.9, 81.1, 75.4, 66.4, 74.8, 84.1, 57.9),
                "BERT-Small": (27.8, 89.7, 83.4, 78.8, 68.1, 77.6, 86.4, 61.8),
                "BERT-Medium": (38.0, 89.6, 86.6, 80.4, 69.6, 80.0, 87.7, 62.2),
            }.items()
        ),
        Published(
            "BERT-Base",
            "transformers' run_glue, cased",
            "dev",
            dict(zip(SUITES["glue"][:-1], (56.5, 92.3, 88.9, 88.6, 87.5, 83.9, 90.7, 65.7), strict=True)),
        ),
        Published(
            "ELECTRA-Small",
            "google-research/electra",
            "dev",
            {"cola": 57.0, "sst2": 91.2, "mnli": 81.3, "qnli": 88.4, "rte": 66.7},
        ),
    ),
    "hulu": (),
}
"""What others report, by the same score for each task: Pearson's correlation for STS-B, F1 for MRPC and QQP."""


class SuiteResults(TypedDict):
    """The scores of models on the tasks of a suite."""

    suite: str
    tasks: list[str]
    """Those with data here."""
    missing: dict[str, str]
    """The other tasks, each with the reason."""
    models: dict[str, dict[str, Results]]
    """By model and task."""
    means: dict[str, float]
    """The mean of the official scores of each model over all tasks that are averaged."""


def run_suite(
    suite: str, models: Sequence[Path], data: Path | None, out: Path, seeds: int = 1, log: Log = SILENT
) -> SuiteResults:
    """Fine-tune each model for each task of a suite that has data in the folder `data`, with the seeds 1 to `seeds`.

    What is finished is not run again. All recipes are drafted before the first training. Raises `RecipeError` if no
    task has data, or two models have the same name, and whatever `finetune` raises.
    """
    if data is not None and not data.is_dir():
        raise RecipeError(f"--data {data} is no folder. Give one that has a folder for each task of {suite}.")
    found, missing = dict[str, Path](), dict[str, str]()
    for task in SUITES[suite]:
        folder = find_data(task, data)
        if folder is None:
            missing[task] = f"no folder of that name with a training file in {data or 'GLUE_DIR or the caches'}"
            log.say(f"evaluate: {task} is left out: {missing[task]}")
        else:
            found[task] = folder
    if not found:
        raise RecipeError(
            f"--suite {suite}: {data or 'this machine'} has data of none of its tasks. Give --data FOLDER."
        )
    drafts = {
        name: {task: draft(task, model, folder) for task, folder in found.items()} for name, model in _named(models)
    }
    results = {name: _run_model(name, of_model, out, seeds, log) for name, of_model in drafts.items()}
    averaged = [task for task in found if task not in NOT_AVERAGED]
    means = {
        name: fmean(official(of_model[task]) for task in averaged) for name, of_model in results.items() if averaged
    }
    whole = SuiteResults(suite=suite, tasks=list(found), missing=missing, models=results, means=means)
    write_json(out / "suite.json", whole)
    return whole


def _run_model(name: str, drafts: Mapping[str, Draft], out: Path, seeds: int, log: Log) -> dict[str, Results]:
    results = {}
    for task, drafted in drafts.items():
        log.say(f"evaluate: {name}: {task}")
        results[task] = finetune(drafted, out / name / task, seeds, log)
    return results


def _named(models: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """The models by the names of their folders."""
    names = [model.resolve().name for model in models]
    for name, model in zip(names, models, strict=True):
        if names.count(name) > 1:
            raise RecipeError(f"two models are called {name}, so their runs would be the same. Rename a folder.")
        yield name, model


def find_data(task: str, data: Path | None) -> Path | None:
    """The folder with the training file of a task: below `data`, by its name, or where GLUE's tasks are found."""
    if data is None:
        folder = glue_folder(Path("glue") / task) if TASKS[task].kind == "glue" else None
        return folder if folder is not None and _has_training_file(folder) else None
    for folder in sorted(each for each in data.iterdir() if each.is_dir()):
        name = re.sub(r"[\W_]+", "", folder.name.lower())
        if _FOLDERS.get(name, name) == task:
            return next((each for each in (folder, folder / "data") if _has_training_file(each)), None)
    return None


def _has_training_file(folder: Path) -> bool:
    return folder.is_dir() and bool(named_files([each for each in folder.iterdir() if each.is_file()], TRAINING))


def official(results: Results) -> float:
    """The mean of the score that is published for the task."""
    return results["scores"][results["metric"]]["mean"]
