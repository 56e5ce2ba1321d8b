"""The recipe's choice of what a network is trained for. Knows no torch."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bertwright.core.config import Section, UserPath, known_by_content
from bertwright.examples.labelled.tasks import GLUE, Columns, GlueTask, LabelledTexts, glue


class PreTrainingConfig(Section):
    """Masked-language modelling and, where the examples are pairs of segments, next-sentence prediction or, with
    `examples.plan = "sentence-order"`, the order of the segments."""

    kind: Literal["pretraining"] = "pretraining"
    """Names this objective."""

    def next_sentence(self, pairs: bool) -> bool:
        """Whether the network needs a next-sentence head; `pairs` says that the examples are pairs of segments."""
        return pairs


class DistillationConfig(Section):
    """Pre-training beside a teacher, whose answers and hidden states the network comes to share (Hinton et al. 2015;
    Sanh et al. 2019, DistilBERT, whose weights and temperature are the defaults)."""

    kind: Literal["distillation"] = "distillation"
    """Names this objective."""
    teacher: UserPath = known_by_content(...)
    """The network to learn from, of any family and with the same vocabulary: a finished `train` folder, or a folder as
    transformers writes it (config.json, model.safetensors, vocab.txt)."""
    temperature: float = Field(2.0, gt=0)
    """By how much the logits of both networks are divided before their softmax in the soft term; above 1 the teacher's
    less likely answers count more."""
    soft_weight: float = Field(5.0, ge=0)
    """What the cross-entropy with the teacher's probabilities counts in the loss, times temperature² (whereby its
    gradients are as long at any temperature); 0 leaves the term out."""
    mlm_weight: float = Field(2.0, ge=0)
    """What the cross-entropy with the masked tokens themselves counts in the loss; at 0 it is measured all the same."""
    pair_weight: float = Field(1.0, ge=0)
    """What the loss of the pairs' labels (nsp, sop) counts, where the examples are pairs; 0: the network has no
    next-sentence head."""
    hidden_weight: float = Field(1.0, ge=0)
    """What 1 - the cosine between the hidden states of the two networks counts in the loss, a mean over the compared
    layers; 0 leaves the term out, as it must be where the hidden sizes differ."""
    layers: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """The layer of the teacher, counted from 1, that each layer of the network is compared with, from its first to its
    last; 0: with none. Empty: evenly spread, so that the last ones meet."""

    @model_validator(mode="after")
    def _something_is_taught(self) -> Self:
        if not self.soft_weight and not self.hidden_weight:
            raise ValueError(
                "soft_weight and hidden_weight are both 0, so the teacher would teach nothing; raise one, or set "
                'kind = "pretraining"'
            )
        # A setting that would do nothing is refused, not ignored.
        if not self.soft_weight and self.temperature != type(self).model_fields["temperature"].default:
            raise ValueError(f"temperature {self.temperature:g} means something with soft_weight above 0 only")
        if self.layers and not self.hidden_weight:
            raise ValueError(f"layers {list(self.layers)} mean something with hidden_weight above 0 only")
        if self.layers and not any(self.layers):
            raise ValueError(f"layers {list(self.layers)} compare nothing; set hidden_weight = 0 instead")
        return self

    def next_sentence(self, pairs: bool) -> bool:
        """As `PreTrainingConfig.next_sentence`."""
        return pairs and self.pair_weight > 0

    def compared(self, own: int, teachers: int) -> dict[int, int]:
        """For each compared layer of a network with `own` layers, counted from 1, the one of a teacher with
        `teachers`."""
        spread = tuple(-(-number * teachers // own) for number in range(1, own + 1))
        return {number: layer for number, layer in enumerate(self.layers or spread, 1) if layer}


class ClassificationConfig(Section):
    """A class, or a number, for each text or pair of texts (Devlin et al. 2019 §4.1), read from the data of the phases;
    from random weights, or from a pre-trained network that `train.init_from` names."""

    kind: Literal["classification"] = "classification"
    """Names this objective."""
    task: GlueTask | None = None
    """A task of GLUE, which says columns and classes; give this or `labels`."""
    labels: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Names of the classes, as the files have them or in the order of their numbers from 0; one name: labels are
    numbers, and what is learnt is a regression."""
    text: str = "text"
    """The column or key of the text, or of the first one of a pair."""
    pair: str = ""
    """That of the second text; empty: texts are single."""
    label: str = "label"
    """That of the label."""

    @model_validator(mode="after")
    def _of_glue_or_of_ones_own(self) -> Self:
        if (self.task is None) == (not self.labels):
            raise ValueError(
                f"give exactly one of task (one of GLUE's: {', '.join(GLUE)}) and labels (names of classes; one name "
                f"for numbers); got task={self.task!r}, labels={list(self.labels)}"
            )
        fields = type(self).model_fields
        # A setting that would do nothing is refused, not ignored.
        if self.task and (set_too := [n for n in ("text", "pair", "label") if getattr(self, n) != fields[n].default]):
            raise ValueError(f"task {self.task} says its columns: leave out {', '.join(set_too)}")
        if len(set(self.labels)) < len(self.labels):
            raise ValueError(f"labels {list(self.labels)} name a class twice")
        return self

    @property
    def texts(self) -> LabelledTexts:
        """How the files are read, and their classes."""
        columns = Columns(self.label, self.text, self.pair)
        return glue(self.task) if self.task else LabelledTexts(self.labels, (columns,))

    def next_sentence(self, pairs: bool) -> bool:
        """No: a classifier stands in the place of the pre-training heads."""
        return False


ObjectiveConfig = Annotated[PreTrainingConfig | DistillationConfig | ClassificationConfig, Field(discriminator="kind")]
"""What a network can be trained for: the union of the sections."""


def texts_of(objective: ObjectiveConfig) -> LabelledTexts | None:
    """The labelled texts that an objective learns from; None where its examples are made of running text."""
    return objective.texts if isinstance(objective, ClassificationConfig) else None


def labels_of(objective: ObjectiveConfig) -> tuple[str, ...]:
    """The classes that the network tells apart; none with pre-training heads."""
    texts = texts_of(objective)
    return texts.labels if texts else ()
