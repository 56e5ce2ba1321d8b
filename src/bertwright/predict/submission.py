"""The files that benchmark servers take: GLUE's .tsv of each task, and HuLU's .json.

GLUE    index and prediction of each record of the task's test file (gluebenchmark.com/faq); AX is that of MNLI's model
HuLU    a list of {"id", "label"} (HuLU-evaluate, hulu.nytud.hu)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bertwright.core.errors import DataError, RecipeError
from bertwright.core.files import make_folder, read_json, write_atomic
from bertwright.examples.labelled.config import glue
from bertwright.examples.problems import Problems
from bertwright.finetune.seeds import SCORES
from bertwright.finetune.suites import SUITES
from bertwright.finetune.tasks import TASKS, FinetuneTask
from bertwright.predict.answerers import run_of
from bertwright.predict.source import Answer, Answered

_GLUE = {
    "cola": "CoLA",
    "sst2": "SST-2",
    "mrpc": "MRPC",
    "qqp": "QQP",
    "stsb": "STS-B",
    "qnli": "QNLI",
    "rte": "RTE",
    "wnli": "WNLI",
}
_NUMBERED = ("cola", "sst2", "mrpc", "qqp", "wnli")
"""The tasks of GLUE whose answers are numbers of classes, not names."""
_MNLI = {"mismatched": "MNLI-mm", "matched": "MNLI-m", "diagnostic": "AX", "ax": "AX"}
"""The name of a file of MNLI's model, by a word in the name of the file that it answers."""
_HULU = {"hucola": "cola", "hurte": "rte", "huwnli": "wnli", "hucb": "cb", "hucopa": "copa"}


class Submission(NamedTuple):
    """What a server wants of a task."""

    name: str
    label: Callable[[float], str]
    """The answer as it is written, for the number of a class, or for a number that is predicted."""


def find_submission(suite: str, folder: Path, file: Path) -> Submission:
    """The submission of the model in `folder` for a file; `suite` is one of `SUITES` or the name of a task.

    Raises `RecipeError` if that is not known, or has no such submission.
    """
    task = _task(suite, folder)
    if task.name in _HULU:
        name = f"{_HULU[task.name]}_predicted_labels.json"
        if task.name == "hucb":
            return Submission(name, lambda number: task.labels[int(number)])
        return Submission(name, lambda number: f"{number:.0f}")
    if task.kind != "glue":
        raise RecipeError(f"--submission: no server takes answers of {task.name}. Give a model of GLUE or HuLU.")
    name = _GLUE.get(task.name) or next((end for word, end in _MNLI.items() if word in file.stem.lower()), "")
    if not name:
        raise RecipeError(
            f"--submission: {file} is none of MNLI's test files. Give test_matched.tsv, test_mismatched.tsv or "
            "diagnostic.tsv."
        )
    if task.name == "stsb":
        return Submission(f"{name}.tsv", lambda number: f"{min(max(number, 0.0), 5.0):.3f}")
    if task.name in _NUMBERED:
        return Submission(f"{name}.tsv", lambda number: f"{number:.0f}")
    labels = glue(task.name).labels  # type: ignore[arg-type]
    return Submission(f"{name}.tsv", lambda number: labels[int(number)])


def write_submission(
    submission: Submission, labels: Sequence[str], answered: Answered, problems: Problems, out: Path
) -> Path:
    """Write the answers of a model with these `labels` to the folder `out`; returns the file.

    Raises `DataError` if a record has no answer, because servers want all of them.
    """
    answers = [answer for _, some in answered for answer in some if answer]
    if sentence := next(problems.sentences(), ""):
        raise DataError(f"{sentence}, so a submission would lack answers. Give the test file as it was published.")
    written = [submission.label(_number(answer, labels)) for answer in answers]
    if submission.name.endswith(".tsv"):
        text = "".join(f"{number}\t{label}\n" for number, label in [("index", "prediction"), *enumerate(written)])
    else:
        rows: list[Mapping[str, str]] = [{"id": str(number), "label": label} for number, label in enumerate(written)]
        text = json.dumps(rows, ensure_ascii=False, indent=4)
    file = make_folder(out) / submission.name
    write_atomic(file, text.encode())
    return file


def _number(answer: Answer, labels: Sequence[str]) -> float:
    """The number of the class or the choice, or the number itself."""
    if "choice" in answer.details:
        return float(answer.details["choice"])
    predicted = answer.added["prediction"]
    return float(labels.index(predicted) if len(labels) > 1 else predicted)


def _task(suite: str, folder: Path) -> FinetuneTask:
    """The task of that name, or the one that the run of the model was fine-tuned for."""
    if suite in TASKS:
        return TASKS[suite]
    if suite not in SUITES:
        raise RecipeError(f"--submission {suite}: give {' or '.join(SUITES)}, or the name of a task, such as cola.")
    run = run_of(folder)
    # Of several seeds or points of a grid, the file stands above the run.
    places = [] if run is None else [each / SCORES for each in (run, *run.resolve().parents[:2])]
    for file in places:
        if file.is_file() and (name := read_json(file).get("task")) in TASKS:
            return TASKS[name]
    raise RecipeError(f"{folder} does not say which task it was trained for. Name it, such as --submission cola.")
