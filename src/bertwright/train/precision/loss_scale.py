"""The loss scale that keeps float16 gradients from vanishing and overflowing (Micikevicius et al. 2018 §3.2).

Its state is two numbers in the checkpoint, and each step's scale depends only on them. The rule is that of torch's
GradScaler: halve on an overflow, double after a given number of updates without one.
"""

from __future__ import annotations

from dataclasses import dataclass

from bertwright.train.precision.config import LARGEST_SCALE, Fp16Config, PrecisionConfig


@dataclass(frozen=True)
class LossScale:
    """The loss scale, and how long it has been in use."""

    factor: float
    """Factor by which the loss is multiplied before the backward pass, and by which the gradients are divided
    afterwards."""
    applied: int = 0
    """Updates since it last changed."""


def scale_from(config: PrecisionConfig, before: LossScale | None) -> LossScale | None:
    """Return the scale to continue with, given a checkpoint's `before`; None if this precision has no loss scaling."""
    return before or LossScale(config.initial_scale) if isinstance(config, Fp16Config) else None


def is_lower(scale: LossScale | None, before: LossScale | None) -> bool:
    """Whether the scale has been lowered: the gradient had overflowed, and the scale was above its limit."""
    return scale is not None and before is not None and scale.factor < before.factor


def scale_after(config: PrecisionConfig, scale: LossScale | None, finite: bool) -> LossScale | None:
    """Return the scale after a step with `scale`, whose gradient was `finite` or had overflowed."""
    if not isinstance(config, Fp16Config) or scale is None:
        return None
    if not finite:
        return LossScale(max(scale.factor / 2, config.min_scale))
    if scale.applied + 1 < config.growth_interval:
        return LossScale(scale.factor, scale.applied + 1)
    return LossScale(min(scale.factor * 2, LARGEST_SCALE))
