"""The factor of the loss with which float16 gradients neither vanish nor overflow (Micikevicius et al. 2018 §3.2).

Its state is two numbers of the checkpoint, and what follows from a step is a function of them. The rule is that of
torch's GradScaler: halve at an overflow, double after so many updates without one.
"""

from __future__ import annotations

from dataclasses import dataclass

from bertwright.train.precision.config import LARGEST_SCALE, Fp16Config, PrecisionConfig


@dataclass(frozen=True)
class LossScale:
    """The factor, and how long it has held."""

    factor: float
    """The loss is multiplied by it before the backward pass, and the gradients divided by it after."""
    applied: int = 0
    """Updates since it last changed."""


def scale_from(config: PrecisionConfig, before: LossScale | None) -> LossScale | None:
    """The scale to go on with, where a checkpoint has `before`: None where this precision scales nothing."""
    return before or LossScale(config.initial_scale) if isinstance(config, Fp16Config) else None


def scale_after(config: PrecisionConfig, scale: LossScale | None, finite: bool) -> LossScale | None:
    """The scale of the step after one with `scale`, whose gradient was `finite` or had overflowed."""
    if not isinstance(config, Fp16Config) or scale is None:
        return None
    if not finite:
        return LossScale(max(scale.factor / 2, config.min_scale))
    if scale.applied + 1 < config.growth_interval:
        return LossScale(scale.factor, scale.applied + 1)
    return LossScale(min(scale.factor * 2, LARGEST_SCALE))
