"""The rules by which a family draws its initial weights; `initial` draws them. Does not import torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Normal:
    """Matrices are drawn from N(0, std²), biases start at 0, layer norms at 1 and 0."""

    std: float


@dataclass(frozen=True)
class TruncatedNormal:
    """Like `Normal`, but truncated, and smaller where a product is added to the residual."""

    std: float
    cutoff: float
    """Number of standard deviations at which the distribution is truncated."""
