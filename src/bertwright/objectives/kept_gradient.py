"""The gradient of logits that is made on the way forward and kept, in their precision, for the way back.

float16 has nothing between 0 and 6e-8, and over a whole vocabulary most differences of probabilities are that small.
The loss is scaled for their sake (Micikevicius et al. 2018 §3.2), but its scale comes with the way back. So each row is
kept as a multiple of its own: times the power of two that brings its largest number to between 2^14 and 2^15. The power
is divided out in float32 together with the scale, and what float16 can hold then is rounded from numbers that it held
just as well before. bfloat16 reaches as far down as float32, and there and in float32 rows are kept as they are.

Names carry shapes: N predictions of C classes each, R of them in a block.
"""

from __future__ import annotations

import torch
from torch import Tensor

_BLOCK = {True: 1 << 18, False: 1 << 24}
"""Numbers in float32 at a time: on a CPU as many as its cache holds, elsewhere enough to keep the device busy."""
_TOP, _BOUND = 15, 64
"""Exponents: that below which a row's largest number is brought, and the most that a row is moved by."""


def rows_at_a_time(logits_NC: Tensor) -> int:
    """How many rows of the logits make a block."""
    return max(1, _BLOCK[logits_NC.device.type == "cpu"] // logits_NC.shape[1])


class KeptGradient:
    """The gradient of logits [N, C], taken in block by block."""

    def __init__(self, logits_NC: Tensor) -> None:
        self.rows_NC = torch.empty_like(logits_NC)
        self.powers_N1: Tensor | None = None
        """By what each row was multiplied, float32; None where none was."""
        if logits_NC.dtype == torch.float16:
            self.powers_N1 = logits_NC.new_ones(len(logits_NC), 1, dtype=torch.float32)

    def keep(self, block: slice, gradient_RC: Tensor) -> None:
        """Take in these rows, given in float32 or wider; they may be changed."""
        if self.powers_N1 is not None:
            largest_R1 = torch.linalg.vector_norm(gradient_RC, torch.inf, -1, keepdim=True)
            # A row of zeros is moved too, and stays what it is; one that is not finite stays so.
            exponents_R1 = (_TOP - torch.frexp(largest_R1).exponent).clamp_(-_BOUND, _BOUND)
            power_R1 = torch.ldexp(torch.ones_like(largest_R1), exponents_R1)
            self.powers_N1[block] = power_R1
            gradient_RC = gradient_RC.mul_(power_R1)
        self.rows_NC[block] = gradient_RC


def times(rows_NC: Tensor, powers_N1: Tensor | None, gradient: Tensor) -> Tensor:
    """The gradient of logits [N, C], which `KeptGradient` kept as `rows_NC` and `powers_N1`, times that of their loss,
    a scalar; in the memory of the rows."""
    if powers_N1 is None:
        return rows_NC.mul_(gradient)
    rows = rows_at_a_time(rows_NC)
    for first in range(0, len(rows_NC), rows):
        block = slice(first, first + rows)
        rows_NC[block] = rows_NC[block].float().mul_(gradient.float() / powers_N1[block])
    return rows_NC
