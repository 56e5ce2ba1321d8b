"""A term of a loss: one kind of prediction in a batch, as weighted sums, in nats.

Sums, not means: the training step divides by the counts of the whole global batch, so that micro-batches and ranks
change only the order of summation. (The originals take the mean of each micro-batch and average those, which weighs
a token by the company it happens to have.) Computed in float32 or wider whatever the logits are.

Names carry shapes: N predictions of C classes each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from bertwright.objectives.kept_gradient import KeptGradient, rows_at_a_time, times

Counted = Literal["predictions", "pairs", "sequences"]
"""What the loader counts in a step (`StepCounts`) and a loss may be the mean over."""


class Summed(Protocol):
    """A term as sums over a batch."""

    @property
    def share(self) -> float:
        """What its mean counts in the loss; metrics and scores have the mean itself."""

    @property
    def loss_sum(self) -> Tensor:
        """Σ weight · loss, in nats unless the term says otherwise: a scalar, to be differentiated once."""

    @property
    def right_sum(self) -> Tensor | None:
        """Σ weight of what was guessed right: a scalar; None for a term in which nothing is guessed."""

    @property
    def weight_sum(self) -> Tensor:
        """Σ weight: a scalar."""


@dataclass(frozen=True)
class Term:
    """What was predicted, what is right, and what each prediction counts: see `Summed`."""

    logits: Tensor
    """[N, C] a score for each class."""
    labels: Tensor
    """[N] int64, the right class."""
    weights: Tensor
    """[N] float32, what each prediction counts: 1, or 0 for padding, so that their sum is what the loader counts."""
    share: float = 1.0
    """What the mean counts in the loss."""

    @property
    def loss_sum(self) -> Tensor:
        """Σ weight · cross-entropy, in nats: a scalar, to be differentiated once."""
        return cross_entropy_sum(self.logits, self.labels, self.weights)

    @property
    def right_sum(self) -> Tensor:
        """Σ weight of the predictions whose best class is the right one: a scalar."""
        return ((self.logits.argmax(-1) == self.labels) * self.weights).sum()

    @property
    def weight_sum(self) -> Tensor:
        """Σ weight: a scalar."""
        return self.weights.sum()


def cross_entropy_sum(logits_NC: Tensor, labels_N: Tensor, weights_N: Tensor) -> Tensor:
    """Σ weight · cross-entropy over N predictions of C classes: a scalar, to be differentiated once."""
    rule = _CrossEntropySum if logits_NC.dtype in (torch.float32, torch.float64) else _BlockedCrossEntropySum
    return rule.apply(logits_NC, labels_N, weights_N)  # type: ignore[no-any-return, no-untyped-call]


class _CrossEntropySum(Function):
    """Keeps one tensor of the logits' size and turns it into the gradient in place.

    torch's cross_entropy makes three such tensors; at 608 predictions of 30,522 tokens (74 MB each) the other two
    cost a CPU 5 % of a mini network's training step.
    """

    @staticmethod
    def forward(ctx: Any, logits_NC: Tensor, labels_N: Tensor, weights_N: Tensor) -> Tensor:
        # bfloat16 has two to three digits, too few for a sum over a whole vocabulary.
        wide = torch.promote_types(logits_NC.dtype, torch.float32)
        log_p_NC = torch.log_softmax(logits_NC, -1, dtype=wide)
        weights_N = weights_N.to(wide)
        ctx.save_for_backward(log_p_NC, labels_N, weights_N)
        ctx.dtype = logits_NC.dtype
        return -torch.dot(log_p_NC.gather(-1, labels_N[:, None])[:, 0], weights_N)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        log_p_NC, labels_N, weights_N = ctx.saved_tensors  # refused by torch once changed below
        # In place: this is the largest tensor of the step, and nobody needs the log-probabilities any more.
        p_NC = log_p_NC.exp_()
        p_NC[torch.arange(len(labels_N), device=labels_N.device), labels_N] -= 1
        return p_NC.mul_((gradient * weights_N)[:, None]).to(ctx.dtype), None, None


class _BlockedCrossEntropySum(Function):
    """The same of logits in low precision, some rows at a time in float32: no float32 tensor is as large as they are.

    The gradient is made on the way forward, where the rows are at hand, and kept in the logits' own precision
    (`kept_gradient`): half the memory and, on a CPU, two thirds of the time.
    """

    @staticmethod
    def forward(ctx: Any, logits_NC: Tensor, labels_N: Tensor, weights_N: Tensor) -> Tensor:
        number, rows = len(logits_NC), rows_at_a_time(logits_NC)
        kept = KeptGradient(logits_NC) if ctx.needs_input_grad[0] else None
        losses_N = weights_N.new_zeros(number, dtype=torch.float32)
        for first in range(0, number, rows):
            block = slice(first, first + rows)
            x_RC, labels_R1 = logits_NC[block].float(), labels_N[block, None]
            right_R1, largest_R1 = x_RC.gather(-1, labels_R1), x_RC.amax(-1, keepdim=True)
            sums_R1 = x_RC.sub_(largest_R1).exp_().sum(-1, keepdim=True)
            losses_N[block] = (largest_R1 + sums_R1.log() - right_R1)[:, 0]
            if kept is not None:
                weights_R1 = weights_N[block, None].float()
                kept.keep(block, x_RC.mul_(weights_R1 / sums_R1).scatter_add_(-1, labels_R1, -weights_R1))
        ctx.save_for_backward(*((kept.rows_NC, kept.powers_N1) if kept else ()))
        return torch.dot(losses_N, weights_N.float())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        rows_NC, powers_N1 = ctx.saved_tensors  # refused by torch once changed below
        return times(rows_NC, powers_N1, gradient), None, None
