"""Pre-training with a teacher: Hinton et al. 2015; Sanh et al. 2019 §2 and their published train loop (DistilBERT).

Names carry shapes: P predictions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import nn

from bertwright.core.errors import RecipeError
from bertwright.model.batch import PackedBatch
from bertwright.model.layer_states import layer_states
from bertwright.model.pretrained_config import read_pretrained
from bertwright.model.pretraining import PreTrainingModel
from bertwright.objectives.config import DistillationConfig
from bertwright.objectives.pretraining import PreTraining
from bertwright.objectives.soft import HiddenTerm, SoftTerm
from bertwright.objectives.teacher import load_teacher
from bertwright.objectives.term import Counted, Summed


@dataclass(frozen=True)
class Distillation:
    """The terms of pre-training, `soft` (the teacher's probabilities) and `hidden` (its hidden states)."""

    config: DistillationConfig
    pretraining: PreTraining
    teacher: PreTrainingModel
    """In evaluation mode, in the dtype it computes in."""
    entries: int
    """Size of the vocabulary: logits beyond it, from the padding of an embedding, are ignored."""
    layers: Mapping[int, int]
    """The teacher layer for each compared layer of the network, both counted from 1."""

    @property
    def counted(self) -> Mapping[str, Counted]:
        """As `Objective.counted`."""
        counted = dict(self.pretraining.counted)
        if self.config.soft_weight:
            counted["soft"] = "predictions"
        if self.layers:
            counted["hidden"] = "predictions"
        return counted

    def terms(self, model: nn.Module, batch: PackedBatch) -> Mapping[str, Summed]:
        """As `Objective.terms`, from one forward pass of each network; the teacher's comes first, because it keeps no
        tensors for gradients."""
        # A module that runs the operations of the network in another runtime has no layers, and no layer is compared.
        config, network = self.config, cast(PreTrainingModel, model)
        with torch.no_grad(), layer_states(self.teacher, batch, set(self.layers.values())) as theirs:
            teachers_PV, _ = self.teacher(batch)
        with layer_states(network, batch, self.layers.keys()) as own:
            plain = self.pretraining.terms(network, batch)
        shares = dict.fromkeys(plain, config.pair_weight) | {"mlm": config.mlm_weight}
        terms: dict[str, Summed] = {name: replace(term, share=shares[name]) for name, term in plain.items()}
        if config.soft_weight:
            logits_PV = plain["mlm"].logits[:, : self.entries]
            share = config.soft_weight * config.temperature**2
            terms["soft"] = SoftTerm(
                logits_PV, teachers_PV[:, : self.entries], batch.weights, config.temperature, share
            )
        if self.layers:
            pairs = [(own[layer], theirs[other]) for layer, other in self.layers.items()]
            states, others = zip(*pairs, strict=True)
            terms["hidden"] = HiddenTerm(states, others, batch.weights, config.hidden_weight)
        return terms


def distillation(config: DistillationConfig, model: PreTrainingModel, pair_task: str) -> Distillation:
    """The objective for training `model` with the teacher of `config`, whose files are read here; call `check_teacher`
    first.

    Raises `ArtifactError` if the files are corrupt or do not match the teacher's configuration, and `RecipeError` if
    hidden states of an encoder that applies one layer repeatedly would have to be compared.
    """
    teacher, network = read_pretrained(config.teacher), model.config
    layers = config.compared(network.num_hidden_layers, teacher.network.num_hidden_layers)
    pretraining = PreTraining(network.next_sentence, pair_task)
    weights = load_teacher(teacher, model)
    for each in (model, weights) if config.hidden_weight else ():
        if not hasattr(each.encoder, "layers"):
            raise RecipeError(
                f"train.objective.hidden_weight: a {each.config.title} of the family {each.config.family} has no "
                "separate layers with states to compare; set it to 0."
            )
    return Distillation(config, pretraining, weights, len(teacher.entries), layers if config.hidden_weight else {})
