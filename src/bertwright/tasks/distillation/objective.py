"""Pre-training with a teacher: Hinton et al. 2015; Sanh et al. 2019 §2 and their published train loop (DistilBERT).

Names carry shapes: P predictions, V vocabulary.

The loss terms that compare a network with its teacher: by their predictions, and by their hidden states.

Names carry shapes: N predictions of C classes each, H hidden.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import cosine_similarity

from bertwright.core.errors import RecipeError
from bertwright.model.batch import PackedBatch
from bertwright.model.layer_states import layer_states
from bertwright.model.pretrained_config import read_pretrained
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.tracing import is_traced
from bertwright.tasks.distillation.config import DistillationConfig
from bertwright.tasks.distillation.teacher import load_teacher
from bertwright.tasks.pretraining.objective import PreTraining
from bertwright.tasks.terms import Counted, KeptGradient, Summed, rows_at_a_time, times


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


@dataclass(frozen=True)
class SoftTerm:
    """Cross-entropy with the teacher's probabilities as targets (Hinton et al. 2015 §2); see `Summed`.

    If both networks predict the same, it equals the teacher's entropy, not 0; Sanh et al. 2019 report the KL
    divergence, which is smaller by the teacher's entropy and has the same gradient.
    """

    logits: Tensor
    """[N, C] logits of the network."""
    teachers: Tensor
    """[N, C] logits of the teacher."""
    weights: Tensor
    """[N] float32, as `Term.weights`."""
    temperature: float
    """Divisor of the logits of both networks."""
    share: float
    """Weight of the mean in the loss, including temperature² to compensate for the smaller gradients of the logits."""

    @property
    def loss_sum(self) -> Tensor:
        """Σ weight · cross-entropy of the softened probabilities, in nats: a scalar, differentiable once."""
        if is_traced():
            target_NC = torch.softmax(_wide(self.teachers) / self.temperature, -1)
            losses_N = -(target_NC * torch.log_softmax(_wide(self.logits) / self.temperature, -1)).sum(-1)
            return torch.dot(losses_N, self.weights.to(losses_N.dtype))
        rule: Any = _SoftCrossEntropySum
        summed: Tensor = rule.apply(self.logits, self.teachers, self.weights, self.temperature)
        return summed

    @property
    def correct_sum(self) -> Tensor:
        """Σ weight of the predictions whose top class is the teacher's top class: a scalar."""
        return ((self.logits.argmax(-1) == self.teachers.argmax(-1)) * self.weights).sum()

    @property
    def weight_sum(self) -> Tensor:
        """Σ weight: a scalar."""
        return self.weights.sum()


@dataclass(frozen=True)
class HiddenTerm:
    """1 - cosine similarity with the teacher's hidden states (Sanh et al. 2019 §2), averaged over layers; see `Summed`.

    Covers only the predicted tokens, the ones whose last-layer states are computed (decision 0028); Sanh et al. use all
    tokens, but only the last layer.
    """

    states: Sequence[Tensor]
    """[N, H] hidden states of each compared layer."""
    teachers: Sequence[Tensor]
    """[N, H] hidden states of the matching teacher layers."""
    weights: Tensor
    """[N] float32, as `Term.weights`."""
    share: float
    """Weight of the mean in the loss."""
    correct_sum: None = None
    """There are no correct predictions to count."""

    @property
    def loss_sum(self) -> Tensor:
        """Σ weight · mean over layers of 1 - cosine, which is from 0 to 2: a scalar, differentiable once."""
        pairs = zip(self.states, self.teachers, strict=True)
        cosines = torch.stack([cosine_similarity(_wide(own), _wide(theirs)) for own, theirs in pairs])
        return torch.dot(1 - cosines.mean(0), self.weights.to(cosines.dtype))

    @property
    def weight_sum(self) -> Tensor:
        """Σ weight: a scalar."""
        return self.weights.sum()


def _wide(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


class _SoftCrossEntropySum(Function):
    """Computed block by block in float32 or wider; the gradient is computed in the forward pass and kept
    (`kept_gradient`), so only one tensor of the logits' size is allocated.

    The gradient of a logit is weight / temperature · (probability - teacher's probability).
    """

    @staticmethod
    def forward(ctx: Any, logits_NC: Tensor, teachers_NC: Tensor, weights_N: Tensor, temperature: float) -> Tensor:
        number, rows = len(logits_NC), rows_at_a_time(logits_NC)
        wide = torch.promote_types(logits_NC.dtype, torch.float32)
        kept = KeptGradient(logits_NC) if ctx.needs_input_grad[0] else None
        losses_N = weights_N.new_zeros(number, dtype=wide)
        for first in range(0, number, rows):
            block = slice(first, first + rows)
            target_RC = torch.softmax(teachers_NC[block].to(wide) / temperature, -1)
            log_p_RC = torch.log_softmax(logits_NC[block].to(wide) / temperature, -1)
            losses_N[block] = -(target_RC * log_p_RC).sum(-1)
            if kept is not None:
                scale_R1 = weights_N[block, None].to(wide) / temperature
                kept.keep(block, log_p_RC.exp_().sub_(target_RC).mul_(scale_R1))
        ctx.save_for_backward(*((kept.rows_NC, kept.powers_N1) if kept else ()))
        return torch.dot(losses_N, weights_N.to(wide))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        rows_NC, powers_N1 = ctx.saved_tensors  # modified below, so torch rejects a second backward pass
        return times(rows_NC, powers_N1, gradient), None, None, None
