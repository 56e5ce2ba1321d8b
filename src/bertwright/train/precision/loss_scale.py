"""The factor of the loss with which float16 gradients neither vanish nor overflow (Micikevicius et al. 2018 §3.2).

Its state is two numbers of the checkpoint, and what follows from a step is a function of them. The rule is that of
torch's GradScaler: halve at an overflow, double after so many updates without one.
"""

from __future__ import annotations

from dataclasses import dataclass

from bertwright.train.precision.config import Fp16Config, PrecisionConfig


@dataclass(frozen=True)
class LossScale:
    """The factor, and how long it has held."""

    factor: float = 1.0
    """The loss is multiplied by it before the backward pass, and the gradients divided by it after."""
    applied: int = 0
    """Updates since it last changed."""


def initial_scale(config: PrecisionConfig) -> LossScale:
    """The scale at the start of a training; 1 where nothing is scaled."""
    return LossScale(config.initial_scale) if isinstance(config, Fp16Config) else LossScale()


def next_scale(config: PrecisionConfig, scale: LossScale, applied: bool) -> LossScale:
    """The scale of the step after one with `scale` whose update was `applied`, or dropped because of an overflow."""
    if not isinstance(config, Fp16Config):
        return scale
    if not applied:
        return LossScale(max(scale.factor / 2, config.min_scale))
    if scale.applied + 1 < config.growth_interval:
        return LossScale(scale.factor, scale.applied + 1)
    doubled = min(scale.factor * 2, 2.0**31)  # far above any use; a float would grow to infinity in the end
    return LossScale(doubled)
