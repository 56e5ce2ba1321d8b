"""Describes labelled texts: columns and classes, and the nine tasks of GLUE (Wang et al. 2019). Does not need numpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

GlueTask = Literal["cola", "sst2", "mrpc", "qqp", "stsb", "mnli", "mnli-mm", "qnli", "rte", "wnli"]
GLUE: tuple[GlueTask, ...] = get_args(GlueTask)


@dataclass(frozen=True)
class Columns:
    """The names of the columns or keys that hold the texts and labels of a file."""

    label: str
    first: str
    second: str = ""
    """The second text of pairs; empty: texts are single."""

    @property
    def names(self) -> tuple[str, ...]:
        """All of them: texts first, the label last."""
        return (self.first, *((self.second,) if self.second else ()), self.label)


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
    ),
    "sst2": LabelledTexts(("negative", "positive"), (Columns("label", "sentence"),), published=67_349),
    "mrpc": LabelledTexts(
        ("not_equivalent", "equivalent"),
        (_SENTENCES, Columns("Quality", "#1 String", "#2 String")),
        published=3_668,
    ),
    "qqp": LabelledTexts(
        ("not_duplicate", "duplicate"),
        (Columns("is_duplicate", "question1", "question2"), Columns("label", "question1", "question2")),
        published=363_846,
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
