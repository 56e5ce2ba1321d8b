"""The terms that compare a network with its teacher: what both answer, and what their layers hold.

Names carry shapes: N predictions of C classes each, H hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import cosine_similarity

from bertwright.objectives.kept_gradient import KeptGradient, rows_at_a_time, times


@dataclass(frozen=True)
class SoftTerm:
    """The teacher's probabilities as targets (Hinton et al. 2015 §2): see `Summed`.

    The cross-entropy with them, so where both networks answer alike it is their entropy and not 0; Sanh et al. 2019
    report the divergence, which is less by the teacher's entropy and has the same gradient.
    """

    logits: Tensor
    """[N, C] of the network."""
    teachers: Tensor
    """[N, C] of the teacher."""
    weights: Tensor
    """[N] float32, as `Term.weights`."""
    temperature: float
    """What the logits of both are divided by."""
    share: float
    """What the mean counts in the loss, temperature² included: gradients of the logits shrink with its inverse."""

    @property
    def loss_sum(self) -> Tensor:
        """Σ weight · cross-entropy of the softened probabilities, in nats: a scalar, to be differentiated once."""
        rule: Any = _SoftCrossEntropySum
        summed: Tensor = rule.apply(self.logits, self.teachers, self.weights, self.temperature)
        return summed

    @property
    def right_sum(self) -> Tensor:
        """Σ weight of the predictions whose best class is the teacher's best: a scalar."""
        return ((self.logits.argmax(-1) == self.teachers.argmax(-1)) * self.weights).sum()

    @property
    def weight_sum(self) -> Tensor:
        """Σ weight: a scalar."""
        return self.weights.sum()


@dataclass(frozen=True)
class HiddenTerm:
    """1 - the cosine between hidden states and the teacher's (Sanh et al. 2019 §2), a mean over layers: see `Summed`.

    Of the predicted tokens, whose states of the last layer are there (decision 0028); Sanh et al. take all tokens, of
    the last layer alone.
    """

    states: Sequence[Tensor]
    """For each compared layer [N, H]."""
    teachers: Sequence[Tensor]
    """The teacher's, [N, H]."""
    weights: Tensor
    """[N] float32, as `Term.weights`."""
    share: float
    """What the mean counts in the loss."""
    right_sum: None = None
    """Nothing is guessed."""

    @property
    def loss_sum(self) -> Tensor:
        """Σ weight · mean over layers of 1 - cosine, from 0 to 2: a scalar, to be differentiated once."""
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
    """Some rows at a time in float32 or wider, with the gradient made on the way and kept (`kept_gradient`): a tensor
    of the logits' size alone.

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
        rows_NC, powers_N1 = ctx.saved_tensors  # refused by torch once changed below
        return times(rows_NC, powers_N1, gradient), None, None, None
