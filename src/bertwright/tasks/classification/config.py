"""The task `classification` in a recipe. Does not import torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from bertwright.examples.labelled.config import GLUE, Columns, GlueTask, LabelledTexts, glue
from bertwright.examples.labelled.files import TextFiles
from bertwright.tasks.task import TaskSettings

if TYPE_CHECKING:
    from bertwright.model.config import ModelConfig, NetworkConfig


class ClassificationConfig(TaskSettings):
    """Predicts a class, several labels, or a number, for each text or pair of texts (Devlin et al. 2019 §4.1) in the
    data of the phases; starts from random weights, or from the pre-trained network named by `train.init_from`."""

    kind: Literal["classification"] = "classification"
    """Names this objective."""
    task: GlueTask | None = None
    """A GLUE task, which determines columns and classes; give either this or `labels`."""
    labels: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Names of the classes, as they appear in the files or in the order of their numbers from 0; a single name: labels
    are numbers, and the task is a regression."""
    text: str = "text"
    """Column or key of the text, or of the first text of a pair."""
    pair: str = ""
    """Column or key of the second text; empty: texts are single."""
    label: str = "label"
    """Column or key of the label; empty, if `several` is set: each label has a column of its own name, with 0 and 1."""
    several: bool = False
    """Whether a text has any number of the labels, also none: the column has a list, or text with `,`, `;` or `|`
    between labels."""

    @model_validator(mode="after")
    def _of_glue_or_of_ones_own(self) -> Self:
        if (self.task is None) == (not self.labels):
            raise ValueError(
                f"give exactly one of task (one of GLUE's: {', '.join(GLUE)}) and labels (names of classes; one name "
                f"for numbers); got task={self.task!r}, labels={list(self.labels)}"
            )
        fields = type(self).model_fields
        # A setting without effect is rejected, not ignored.
        own = ("text", "pair", "label", "several")
        if self.task and (set_too := [name for name in own if getattr(self, name) != fields[name].default]):
            raise ValueError(f"task {self.task} defines its columns: leave out {', '.join(set_too)}")
        if self.several and len(self.labels) == 1:
            raise ValueError(f"several needs at least two labels; got {list(self.labels)}")
        if not self.label and not self.several:
            raise ValueError("label is empty, which is for several=true: give the column of the label")
        if len(set(self.labels)) < len(self.labels):
            raise ValueError(f"labels {list(self.labels)} contain a class twice")
        return self

    @property
    def files(self) -> TextFiles:
        """As `TaskSettings.files`."""
        if self.task:
            return TextFiles(glue(self.task))
        columns = Columns(self.label, self.text, self.pair, () if self.label else self.labels)
        return TextFiles(LabelledTexts(self.labels, (columns,), several=self.several))

    def next_sentence(self, pairs: bool) -> bool:
        """As `TaskSettings.next_sentence`: a classifier replaces the pre-training heads."""
        return False

    def network(self, model: ModelConfig, entries: int, pairs: bool) -> NetworkConfig:
        """As `TaskSettings.network`: with a classifier in place of the pre-training heads."""
        return model.resolve(entries, False, self.files.labels, "several" if self.several else "sequence")
