"""A loss term: one kind of prediction in a batch, as weighted sums, in nats.

Sums, not means: the training step divides by the counts of the entire global batch, so that micro-batches and ranks
change only the order of summation. (The originals average the means of micro-batches, so a token's weight depends on
the number of predictions in its micro-batch.) Computed in float32 or wider, whatever the dtype of the logits.

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
"""What a loss can be averaged over: the counts of a step (`StepCounts`)."""


class Summed(Protocol):
    """A term as sums over a batch."""

    @property
    def share(self) -> float:
        """Weight of its mean in the loss; metrics and scores report the mean itself."""

    @property
    def loss_sum(self) -> Tensor:
        """Σ weight · loss, in nats unless the term says otherwise: a scalar, differentiable once."""

    @property
    def right_sum(self) -> Tensor | None:
        """Σ weight of the correct predictions: a scalar; None for a term without a notion of accuracy."""

    @property
    def weight_sum(self) -> Tensor:
        """Σ weight: a scalar."""


@dataclass(frozen=True)
class Term:
    """Classification by cross-entropy: logits, labels and the weight of each prediction; see `Summed`."""

    logits: Tensor
    """[N, C] a score for each class."""
    labels: Tensor
    """[N] int64, the correct class."""
    weights: Tensor
    """[N] float32, weight of each prediction: 1, or 0 for padding, so that their sum is the loader's count."""
    share: float = 1.0
    """Weight of the mean in the loss."""

    @property
    def loss_sum(self) -> Tensor:
        """Σ weight · cross-entropy, in nats: a scalar, differentiable once."""
        return cross_entropy_sum(self.logits, self.labels, self.weights)

    @property
    def right_sum(self) -> Tensor:
        """Σ weight of the predictions whose top class is the correct one: a scalar."""
        return ((self.logits.argmax(-1) == self.labels) * self.weights).sum()

    @property
    def weight_sum(self) -> Tensor:
        """Σ weight: a scalar."""
        return self.weights.sum()


def cross_entropy_sum(logits_NC: Tensor, labels_N: Tensor, weights_N: Tensor) -> Tensor:
    """Σ weight · cross-entropy over N predictions of C classes: a scalar, differentiable once."""
    rule = _CrossEntropySum if logits_NC.dtype in (torch.float32, torch.float64) else _BlockedCrossEntropySum
    return rule.apply(logits_NC, labels_N, weights_N)  # type: ignore[no-any-return, no-untyped-call]


class _CrossEntropySum(Function):
    """Keeps one tensor of the logits' size and converts it to the gradient in place.

    torch's cross_entropy allocates three such tensors; at 608 predictions of 30,522 tokens (74 MB each) the other two
    cost 5 % of a mini network's training step on a CPU.
    """

    @staticmethod
    def forward(ctx: Any, logits_NC: Tensor, labels_N: Tensor, weights_N: Tensor) -> Tensor:
        # bfloat16 has two to three digits, too few for a sum over an entire vocabulary.
        wide = torch.promote_types(logits_NC.dtype, torch.float32)
        log_p_NC = torch.log_softmax(logits_NC, -1, dtype=wide)
        weights_N = weights_N.to(wide)
        ctx.save_for_backward(log_p_NC, labels_N, weights_N)
        ctx.dtype = logits_NC.dtype
        return -torch.dot(log_p_NC.gather(-1, labels_N[:, None])[:, 0], weights_N)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        log_p_NC, labels_N, weights_N = ctx.saved_tensors  # modified below, so torch rejects a second backward pass
        # In place: this is the largest tensor of the step, and the log-probabilities are no longer needed.
        p_NC = log_p_NC.exp_()
        p_NC[torch.arange(len(labels_N), device=labels_N.device), labels_N] -= 1
        return p_NC.mul_((gradient * weights_N)[:, None]).to(ctx.dtype), None, None


class _BlockedCrossEntropySum(Function):
    """The same for logits in low precision, block by block in float32, without a float32 tensor of the logits' size.

    The gradient is computed in the forward pass, while each block is available, and kept in the logits' precision
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
        rows_NC, powers_N1 = ctx.saved_tensors  # modified below, so torch rejects a second backward pass
        return times(rows_NC, powers_N1, gradient), None, None
