"""What labelled texts are: their columns and classes, and the nine tasks of GLUE (Wang et al. 2019). Knows no numpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

GlueTask = Literal["cola", "sst2", "mrpc", "qqp", "stsb", "mnli", "mnli-mm", "qnli", "rte", "wnli"]
GLUE: tuple[GlueTask, ...] = get_args(GlueTask)


@dataclass(frozen=True)
class Columns:
    """Where a file has its texts and labels, by the names of columns or keys."""

    label: str
    first: str
    second: str = ""
    """Of the second text of pairs; empty: the texts are single."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of all of them."""
        return (self.first, *((self.second,) if self.second else ()), self.label)


@dataclass(frozen=True)
class LabelledTexts:
    """How files of labelled texts are read."""

    labels: tuple[str, ...]
    """The classes in the order of their numbers; one name: labels are numbers."""
    columns: tuple[Columns, ...]
    """Of the first of these that a file has all, texts and labels are taken."""
    without_header: tuple[str, ...] = ()
    """The columns of a .tsv whose first line is a row already."""
    heldout: tuple[str, ...] = ("dev", "validation", "eval", "val")
    """How the names of files begin that are held out."""

    @property
    def pairs(self) -> bool:
        """Whether an example is two texts."""
        return bool(self.columns[0].second)


_MNLI = (Columns("label", "premise", "hypothesis"), Columns("gold_label", "sentence1", "sentence2"))
_NLI = ("entailment", "not_entailment")
_SENTENCES = Columns("label", "sentence1", "sentence2")
# Numbers of classes are those of the data set `glue` at Hugging Face; the second columns of some are those of GLUE's
# own .tsv files.
_TASKS: dict[GlueTask, LabelledTexts] = {
    "cola": LabelledTexts(
        ("unacceptable", "acceptable"),
        (Columns("label", "sentence"),),
        without_header=("source", "label", "mark", "sentence"),
    ),
    "sst2": LabelledTexts(("negative", "positive"), (Columns("label", "sentence"),)),
    "mrpc": LabelledTexts(("not_equivalent", "equivalent"), (_SENTENCES, Columns("Quality", "#1 String", "#2 String"))),
    "qqp": LabelledTexts(
        ("not_duplicate", "duplicate"),
        (Columns("is_duplicate", "question1", "question2"), Columns("label", "question1", "question2")),
    ),
    "stsb": LabelledTexts(("score",), (_SENTENCES, Columns("score", "sentence1", "sentence2"))),
    "mnli": LabelledTexts(
        ("entailment", "neutral", "contradiction"), _MNLI, heldout=("dev_matched", "validation_matched")
    ),
    "mnli-mm": LabelledTexts(
        ("entailment", "neutral", "contradiction"), _MNLI, heldout=("dev_mismatched", "validation_mismatched")
    ),
    "qnli": LabelledTexts(_NLI, (Columns("label", "question", "sentence"),)),
    "rte": LabelledTexts(_NLI, (_SENTENCES,)),
    "wnli": LabelledTexts(("not_entailment", "entailment"), (_SENTENCES,)),
}


def glue(task: GlueTask) -> LabelledTexts:
    """The texts of a task, as GLUE's .tsv files and the data set `glue` at Hugging Face have them."""
    return _TASKS[task]
