"""The training objective of a recipe. Does not import torch."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bertwright.core.config import Section, UserPath, known_by_content
from bertwright.examples.labelled.tasks import GLUE, Columns, GlueTask, LabelledTexts, glue


class PreTrainingConfig(Section):
    """Masked-language modelling and, if the examples are pairs of segments, next-sentence prediction or, with
    `examples.plan = "sentence-order"`, sentence-order prediction."""

    kind: Literal["pretraining"] = "pretraining"
    """Names this objective."""

    def next_sentence(self, pairs: bool) -> bool:
        """Whether the network needs a next-sentence head; `pairs` is whether the examples are pairs of segments."""
        return pairs


class DistillationConfig(Section):
    """Pre-training with a teacher, whose predictions and hidden states the network learns to match (Hinton et al. 2015;
    Sanh et al. 2019, DistilBERT, whose loss weights and temperature are the defaults)."""

    kind: Literal["distillation"] = "distillation"
    """Names this objective."""
    teacher: UserPath = known_by_content(...)
    """The network to learn from, of any family and with the same vocabulary: a finished `train` folder, or a folder
    saved by transformers (config.json, model.safetensors, vocab.txt)."""
    temperature: float = Field(2.0, gt=0)
    """Divisor of the logits of both networks before the softmax of the soft term; above 1, the teacher's less likely
    predictions count more."""
    soft_weight: float = Field(5.0, ge=0)
    """Weight in the loss of the cross-entropy with the teacher's probabilities, multiplied by temperature² (which keeps
    the gradient scale independent of the temperature); 0 omits the term."""
    mlm_weight: float = Field(2.0, ge=0)
    """Weight in the loss of the cross-entropy with the masked tokens; at 0 it is still measured."""
    pair_weight: float = Field(1.0, ge=0)
    """Weight in the loss of the pair labels (nsp, sop), if the examples are pairs; 0: the network has no next-sentence
    head."""
    hidden_weight: float = Field(1.0, ge=0)
    """Weight in the loss of 1 - cosine similarity between the hidden states of the two networks, averaged over the
    compared layers; 0 omits the term, which is required if the hidden sizes differ."""
    layers: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """The teacher layer, counted from 1, that each layer of the network is compared with, one number per layer of the
    network in order; 0: none. Empty: evenly spaced, with the last layers matched to each other."""

    @model_validator(mode="after")
    def _something_is_taught(self) -> Self:
        if not self.soft_weight and not self.hidden_weight:
            raise ValueError(
                "soft_weight and hidden_weight are both 0, so the teacher would have no effect; raise one, or set "
                'kind = "pretraining"'
            )
        # A setting without effect is rejected, not ignored.
        if not self.soft_weight and self.temperature != type(self).model_fields["temperature"].default:
            raise ValueError(f"temperature {self.temperature:g} has an effect only if soft_weight is above 0")
        if self.layers and not self.hidden_weight:
            raise ValueError(f"layers {list(self.layers)} have an effect only if hidden_weight is above 0")
        if self.layers and not any(self.layers):
            raise ValueError(f"layers {list(self.layers)} compare nothing; set hidden_weight = 0 instead")
        return self

    def next_sentence(self, pairs: bool) -> bool:
        """As `PreTrainingConfig.next_sentence`."""
        return pairs and self.pair_weight > 0

    def compared(self, own: int, teachers: int) -> dict[int, int]:
        """Map each compared layer of a network with `own` layers to a layer of a teacher with `teachers` layers; both
        are counted from 1."""
        spread = tuple(-(-number * teachers // own) for number in range(1, own + 1))
        return {number: layer for number, layer in enumerate(self.layers or spread, 1) if layer}


class ClassificationConfig(Section):
    """Predicts a class, or a number, for each text or pair of texts (Devlin et al. 2019 §4.1) in the data of the
    phases; starts from random weights, or from the pre-trained network named by `train.init_from`."""

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
    """Column or key of the label."""

    @model_validator(mode="after")
    def _of_glue_or_of_ones_own(self) -> Self:
        if (self.task is None) == (not self.labels):
            raise ValueError(
                f"give exactly one of task (one of GLUE's: {', '.join(GLUE)}) and labels (names of classes; one name "
                f"for numbers); got task={self.task!r}, labels={list(self.labels)}"
            )
        fields = type(self).model_fields
        # A setting without effect is rejected, not ignored.
        if self.task and (set_too := [n for n in ("text", "pair", "label") if getattr(self, n) != fields[n].default]):
            raise ValueError(f"task {self.task} defines its columns: leave out {', '.join(set_too)}")
        if len(set(self.labels)) < len(self.labels):
            raise ValueError(f"labels {list(self.labels)} contain a class twice")
        return self

    @property
    def texts(self) -> LabelledTexts:
        """How to read the files, and their classes."""
        columns = Columns(self.label, self.text, self.pair)
        return glue(self.task) if self.task else LabelledTexts(self.labels, (columns,))

    def next_sentence(self, pairs: bool) -> bool:
        """False: a classifier replaces the pre-training heads."""
        return False


ObjectiveConfig = Annotated[PreTrainingConfig | DistillationConfig | ClassificationConfig, Field(discriminator="kind")]
"""Any training objective: the union of the sections."""


def texts_of(objective: ObjectiveConfig) -> LabelledTexts | None:
    """The labelled texts that an objective learns from; None if its examples are built from running text."""
    return objective.texts if isinstance(objective, ClassificationConfig) else None


def labels_of(objective: ObjectiveConfig) -> tuple[str, ...]:
    """The classes that the network predicts; empty with pre-training heads."""
    texts = texts_of(objective)
    return texts.labels if texts else ()
