"""A loss term: one kind of prediction in a batch, as weighted sums, in nats.

Sums, not means: the training step divides by the counts of the entire global batch, so that micro-batches and ranks
change only the order of summation. (The originals average the means of micro-batches, so a token's weight depends on
the number of predictions in its micro-batch.) Computed in float32 or wider, whatever the dtype of the logits.

Names carry shapes: N predictions of C classes each.

The gradient of logits, computed in the forward pass and kept in their precision for the backward pass.

float16 has no value between 0 and 6e-8, and over an entire vocabulary most differences of probabilities are that small.
Loss scaling addresses this (Micikevicius et al. 2018 §3.2), but the scale is only known in the backward pass. So each
row is stored multiplied by the power of two that brings its largest absolute value to between 2^14 and 2^15. In the
backward pass the power is divided out in float32, together with the loss scale, so the float16 result is rounded from
values that kept their precision. bfloat16 has the range of float32: with these two dtypes rows are stored unscaled.

Names carry shapes: N predictions of C classes each, R of them in a block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import cross_entropy

from bertwright.model.tracing import is_traced

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
    def correct_sum(self) -> Tensor | None:
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
    def correct_sum(self) -> Tensor:
        """Σ weight of the predictions whose top class is the correct one: a scalar."""
        return ((self.logits.argmax(-1) == self.labels) * self.weights).sum()

    @property
    def weight_sum(self) -> Tensor:
        """Σ weight: a scalar."""
        return self.weights.sum()


def loss_sums(terms: Mapping[str, Summed]) -> dict[str, Tensor]:
    """The loss of each term, a scalar, by name."""
    return {name: term.loss_sum for name, term in terms.items()}


def total_loss(means: Mapping[str, Tensor], terms: Mapping[str, Summed]) -> Tensor:
    """The loss of a step, a scalar, from the means of its terms."""
    # A term with share 0 is only measured, and has no backward pass.
    return torch.stack([mean * terms[name].share for name, mean in means.items() if terms[name].share]).sum()


def cross_entropy_sum(logits_NC: Tensor, labels_N: Tensor, weights_N: Tensor) -> Tensor:
    """Σ weight · cross-entropy over N predictions of C classes: a scalar, differentiable once."""
    wide = torch.promote_types(logits_NC.dtype, torch.float32)
    if is_traced():
        # torch's compiler makes two passes of it over the logits, in their precision: one reads them, the other reads
        # them and writes the gradient (docs/decisions/0068).
        losses_N = cross_entropy(logits_NC.to(wide), labels_N, reduction="none")
        return (losses_N * weights_N.to(wide)).sum()
    rule = _CrossEntropySum if logits_NC.dtype == wide else _BlockedCrossEntropySum
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


_BLOCK = {True: 1 << 18, False: 1 << 24}
"""float32 values per block, by whether the device is a CPU: as many as its cache holds, else enough to keep it busy."""
_TOP, _BOUND = 15, 64
"""Exponents: a row's largest value is scaled to just below 2^_TOP, by a factor of at most 2^±_BOUND."""


def rows_at_a_time(logits_NC: Tensor) -> int:
    """The number of logit rows per block."""
    return max(1, _BLOCK[logits_NC.device.type == "cpu"] // logits_NC.shape[1])


class KeptGradient:
    """The gradient of logits [N, C], stored block by block."""

    def __init__(self, logits_NC: Tensor) -> None:
        self.rows_NC = torch.empty_like(logits_NC)
        self.powers_N1: Tensor | None = None
        """The factor of each row, float32; None if rows are unscaled."""
        if logits_NC.dtype == torch.float16:
            self.powers_N1 = logits_NC.new_ones(len(logits_NC), 1, dtype=torch.float32)

    def keep(self, block: slice, gradient_RC: Tensor) -> None:
        """Store the gradient of these rows, given in float32 or wider; may modify it in place."""
        if self.powers_N1 is not None:
            largest_R1 = torch.linalg.vector_norm(gradient_RC, torch.inf, -1, keepdim=True)
            # Scaling leaves rows of zeros at zero, and non-finite rows non-finite.
            exponents_R1 = (_TOP - torch.frexp(largest_R1).exponent).clamp_(-_BOUND, _BOUND)
            power_R1 = torch.ldexp(torch.ones_like(largest_R1), exponents_R1)
            self.powers_N1[block] = power_R1
            gradient_RC = gradient_RC.mul_(power_R1)
        self.rows_NC[block] = gradient_RC


def times(rows_NC: Tensor, powers_N1: Tensor | None, gradient: Tensor) -> Tensor:
    """The gradient of logits [N, C], stored by `KeptGradient` as `rows_NC` and `powers_N1`, times `gradient`, the
    gradient of their loss, a scalar; overwrites `rows_NC`."""
    if powers_N1 is None:
        return rows_NC.mul_(gradient)
    rows = rows_at_a_time(rows_NC)
    for first in range(0, len(rows_NC), rows):
        block = slice(first, first + rows)
        rows_NC[block] = rows_NC[block].float().mul_(gradient.float() / powers_N1[block])
    return rows_NC
