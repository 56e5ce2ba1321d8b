"""The gradient of logits, computed in the forward pass and kept in their precision for the backward pass.

float16 has no value between 0 and 6e-8, and over an entire vocabulary most differences of probabilities are that small.
Loss scaling addresses this (Micikevicius et al. 2018 §3.2), but the scale is only known in the backward pass. So each
row is stored multiplied by the power of two that brings its largest absolute value to between 2^14 and 2^15. In the
backward pass the power is divided out in float32, together with the loss scale, so the float16 result is rounded from
values that kept their precision. bfloat16 has the range of float32: with these two dtypes rows are stored unscaled.

Names carry shapes: N predictions of C classes each, R of them in a block.
"""

from __future__ import annotations

import torch
from torch import Tensor

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
