"""Dropout whose masks are drawn three times faster on a CPU.

torch's dropout draws one random number per element. Here an element uses 16 of the 64 bits of a number, so the
probability is rounded to a multiple of 2^-16. Kept elements are scaled by the rounded probability, so means are exact.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from bertwright.model.tracing import is_traced

_VALUES = 1 << 16


class Dropout(nn.Module):
    """Zeroes elements with probability `p` while training, scaling the others by 1 / (1 - p) (Hinton et al. 2012)."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Takes a tensor of any shape; returns one of the same shape and dtype."""
        return drop(x, self.p) if self.training else x


def seed_dropout(device: torch.device, key: int) -> None:
    """Seed the generator that dropout on `device` draws from with a 64-bit key."""
    if device.type == "cpu":
        # torch.manual_seed seeds the generators of every kind of device. For each kind that this process does not use,
        # it formats a traceback: up to a millisecond, in every micro-batch.
        torch.default_generator.manual_seed(key)
    else:
        torch.manual_seed(key)


def drop(x: Tensor, p: float) -> Tensor:
    """Return `x`, of any shape, with elements zeroed with probability `p` in [0, 1) and the others scaled by
    1 / (1 - p). Draws from torch's generator."""
    dropped = round(p * _VALUES)
    if not dropped:
        return x
    if x.device.type != "cpu" or is_traced():
        return dropout(x, p)  # on a GPU, and when compiled or exported, the kernel draws the mask
    numbers = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    kept = numbers.view(torch.int16)[: x.numel()].view(x.shape) >= dropped - _VALUES // 2
    return x * kept.to(x.dtype).mul_(_VALUES / (_VALUES - dropped))
