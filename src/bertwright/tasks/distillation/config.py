"""The task `distillation` in a recipe. Does not import torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bertwright.core.config import UserPath, known_by_content
from bertwright.tasks.task import TaskSettings


class DistillationConfig(TaskSettings):
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

    @property
    def taught_by(self) -> Path:
        """As `TaskSettings.taught_by`."""
        return self.teacher

    @property
    def compares_layers(self) -> bool:
        """Whether hidden states are compared."""
        return self.hidden_weight > 0

    def next_sentence(self, pairs: bool) -> bool:
        """As `TaskSettings.next_sentence`."""
        return pairs and self.pair_weight > 0

    def compared(self, own: int, teachers: int) -> dict[int, int]:
        """Map each compared layer of a network with `own` layers to a layer of a teacher with `teachers` layers; both
        are counted from 1."""
        spread = tuple(-(-number * teachers // own) for number in range(1, own + 1))
        return {number: layer for number, layer in enumerate(self.layers or spread, 1) if layer}
