"""Describes labelled texts: columns and classes, and the nine tasks of GLUE (Wang et al. 2019). Does not need numpy.

A task of GLUE, such as `glue/sst2`, is found where programs keep it: a folder of GLUE's files, or Hugging Face's
caches. Nothing is downloaded: a run reads the files that are here, also on a machine without a network.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

GlueTask = Literal["cola", "sst2", "mrpc", "qqp", "stsb", "mnli", "mnli-mm", "qnli", "rte", "wnli"]
GLUE: tuple[GlueTask, ...] = get_args(GlueTask)
SUFFIXES = (".tsv", ".csv", ".jsonl", ".json", ".parquet", ".arrow")
"""The suffixes of files of records, which `records` reads."""


@dataclass(frozen=True)
class Columns:
    """The names of the columns or keys that hold the texts and labels of a file."""

    label: str
    """Empty: each of `labels` has a column."""
    first: str
    second: str = ""
    """The second text of pairs; empty: texts are single."""
    labels: tuple[str, ...] = ()
    """The columns of 0 and 1, one for each label, where there is none with all of them."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Those of the texts."""
        return (self.first, *((self.second,) if self.second else ()))

    @property
    def names(self) -> tuple[str, ...]:
        """All of them: texts first, the label last."""
        return (*self.texts, *(self.labels or (self.label,)))


@dataclass(frozen=True)
class LabelledTexts:
    """How to read files of labelled texts."""

    labels: tuple[str, ...]
    """The classes in the order of their numbers; a single name: labels are numbers (regression)."""
    columns: tuple[Columns, ...]
    """Alternatives; the first one whose columns are all in the file is used."""
    without_header: tuple[str, ...] = ()
    """The columns of a .tsv without a header."""
    heldout: tuple[str, ...] = ("dev", "validation", "valid", "eval", "val")
    """The words that begin the names of held-out files, or else occur in them."""
    published: int = 0
    """The number of texts to train on, as GLUE's data set card gives it; 0: not known before the files are read."""
    several: bool = False
    """Whether a text has any number of the labels."""
    official: str = "accuracy"
    """The score that is published for these classes (Wang et al. 2019 table 1 for GLUE's)."""

    @property
    def numbered(self) -> bool:
        """Whether columns are given by their numbers from 1, as those of a table without a header."""
        return all(name.isascii() and name.isdigit() and int(name) for name in self.columns[0].names)

    @property
    def pairs(self) -> bool:
        """Whether an example is two texts."""
        return bool(self.columns[0].second)


_MNLI = (Columns("label", "premise", "hypothesis"), Columns("gold_label", "sentence1", "sentence2"))
_NLI = ("entailment", "not_entailment")
_SENTENCES = Columns("label", "sentence1", "sentence2")
# Class numbers are those of the dataset `glue` at Hugging Face; alternative columns are those of GLUE's own .tsv files.
_TASKS: dict[GlueTask, LabelledTexts] = {
    "cola": LabelledTexts(
        ("unacceptable", "acceptable"),
        (Columns("label", "sentence"),),
        without_header=("source", "label", "mark", "sentence"),
        published=8_551,
        official="matthews",
    ),
    "sst2": LabelledTexts(("negative", "positive"), (Columns("label", "sentence"),), published=67_349),
    "mrpc": LabelledTexts(
        ("not_equivalent", "equivalent"),
        (_SENTENCES, Columns("Quality", "#1 String", "#2 String")),
        published=3_668,
        official="f1",
    ),
    "qqp": LabelledTexts(
        ("not_duplicate", "duplicate"),
        (Columns("is_duplicate", "question1", "question2"), Columns("label", "question1", "question2")),
        published=363_846,
        official="f1",
    ),
    "stsb": LabelledTexts(("score",), (_SENTENCES, Columns("score", "sentence1", "sentence2")), published=5_749),
    "mnli": LabelledTexts(
        ("entailment", "neutral", "contradiction"),
        _MNLI,
        heldout=("dev_matched", "validation_matched"),
        published=392_702,
    ),
    "mnli-mm": LabelledTexts(
        ("entailment", "neutral", "contradiction"),
        _MNLI,
        heldout=("dev_mismatched", "validation_mismatched"),
        published=392_702,
    ),
    "qnli": LabelledTexts(_NLI, (Columns("label", "question", "sentence"),), published=104_743),
    "rte": LabelledTexts(_NLI, (_SENTENCES,), published=2_490),
    "wnli": LabelledTexts(("not_entailment", "entailment"), (_SENTENCES,), published=635),
}


def glue(task: GlueTask) -> LabelledTexts:
    """How to read a task's texts, from GLUE's .tsv files or the dataset `glue` at Hugging Face."""
    return _TASKS[task]


_FOLDERS = {"sst2": "SST-2", "stsb": "STS-B", "mnli": "MNLI", "cola": "CoLA"}
"""Folders that GLUE's own archive names otherwise than by the task in capitals."""


def glue_folder(path: Path) -> Path:
    """The folder of the task that `path` names, if there is nothing at the path itself; else the path as it is."""
    if path.exists() or not (task := _task(path)):
        return path
    return next((folder for folder in _places(task) if _holds_train(folder)), path)


def missing_glue(path: Path) -> str:
    """Why there is no data at a path that names a task of GLUE, and how to get it; "" for any other path."""
    if not (task := _task(path)):
        return ""
    return (
        f"{path} names a task of GLUE, which is neither a folder here, nor in GLUE_DIR, nor in the caches of Hugging "
        "Face (HF_HOME), and nothing is downloaded; where there is a network, run: hf download nyu-mll/glue "
        f"--repo-type dataset --include '{task}/*'"
    )


def _task(path: Path) -> str:
    """The task in `glue/NAME`, as Hugging Face spells it; "" if the path is another one."""
    folder, *name = path.parts if len(path.parts) == 2 else ("", "")
    task = "".join(name).lower().replace("sst-2", "sst2").replace("sts-b", "stsb").removesuffix("-mm")
    return task if folder.lower() == "glue" and task in GLUE else ""


def _places(task: str) -> Iterator[Path]:
    """The folders where the task may be, the most deliberate first; of several copies in a cache the newest."""
    if own := os.environ.get("GLUE_DIR"):
        yield from (Path(own) / name for name in (_FOLDERS.get(task, task.upper()), task))
    home = Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser()
    hub = Path(os.environ.get("HF_HUB_CACHE", home / "hub"))
    datasets = Path(os.environ.get("HF_DATASETS_CACHE", home / "datasets"))
    for cache, pattern in (
        *((hub, f"datasets--{name}/snapshots/*/{task}") for name in ("nyu-mll--glue", "glue")),
        *((datasets, f"{name}/{task}/*/*") for name in ("nyu-mll___glue", "glue")),
    ):
        yield from sorted(cache.glob(pattern), key=lambda folder: folder.stat().st_mtime, reverse=True)


def _holds_train(folder: Path) -> bool:
    """Whether a copy is whole enough to train on: an interrupted download leaves a folder without these files."""
    return folder.is_dir() and any("train" in file.name for file in folder.iterdir() if file.is_file())
