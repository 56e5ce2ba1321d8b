"""The learning rate as a pure function of the step. Does not import torch.

A schedule is a recipe section: its keys are the parameters, its method `rate` is the formula. To add one, write a class
here or in a new file and add its name to the union in `optim.config`. Warm-up is linear; update `warmup_steps` (counted
from 1) has the peak rate, so no update is wasted at rate 0.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar, Literal, Protocol

from pydantic import Field

from bertwright.core.config import Section
from bertwright.core.errors import RecipeError
from bertwright.core.plugins import Plugin


class Schedule(Protocol):
    """A recipe section that determines the learning rate of each update."""

    def rate(self, step: int, total_steps: int, warmup_steps: float, peak: float) -> float:
        """The learning rate of the update after `step` completed updates, of `total_steps`."""


class SchedulePlugin(Plugin, Section):
    """The base of schedules in other packages (entry points `bertwright.schedules`); a subclass is a `Schedule`, whose
    fields are its recipe keys."""

    group: ClassVar[str] = "bertwright.schedules"

    @abstractmethod
    def rate(self, step: int, total_steps: int, warmup_steps: float, peak: float) -> float:
        """The learning rate of the update after `step` completed updates, of `total_steps`. It should rise to `peak`
        during the first `warmup_steps` updates; `rising`, in this module, is the usual way."""


class LinearSchedule(Section):
    """Linear decay after the warm-up, down to `floor`, which it would reach one update after the last."""

    kind: Literal["linear"] = "linear"
    """Names this schedule."""
    floor: float = Field(0.0, ge=0, le=1)
    """Final learning rate, as a share of the peak."""

    def rate(self, step: int, total_steps: int, warmup_steps: float, peak: float) -> float:
        """As `Schedule.rate`."""
        if step + 1 < warmup_steps:
            return rising(step, warmup_steps, peak)
        return peak * above(self.floor, remaining(step, total_steps, warmup_steps))


class PolySchedule(Section):
    """Polynomial decay after the warm-up: a power of the linear decay to 0, by default its square root."""

    kind: Literal["poly"] = "poly"
    """Names this schedule."""
    power: float = Field(0.5, gt=0)
    """Exponent of the remaining share of the decay; below 1 the rate falls mostly late, above 1 mostly early."""

    def rate(self, step: int, total_steps: int, warmup_steps: float, peak: float) -> float:
        """As `Schedule.rate`."""
        if step + 1 < warmup_steps:
            return rising(step, warmup_steps, peak)
        return float(peak * remaining(step, total_steps, warmup_steps) ** self.power)


class PolyNvidiaSchedule(Section):
    """The PolyWarmUpScheduler of NVIDIA DeepLearningExamples and MLPerf.

    Its decay, a square root there, is measured from the start of training, not from the end of warm-up, so the rate
    drops by 1 - √(1 - warm-up share) after the warm-up (15.4 % in phase 1), and the last update has rate 0.
    """

    kind: Literal["poly_nvidia"] = "poly_nvidia"
    """Names this schedule."""
    power: float = Field(0.5, gt=0)
    """Exponent of the remaining share of the phase."""
    warmup_before: int = Field(0, ge=0)
    """Number of warm-up updates that count as completed before the phase, which therefore starts at a higher rate: 76
    of 287 for MLPerf's start_warmup_step -76. The warm-up must be given as a number of steps, larger than this."""

    def rate(self, step: int, total_steps: int, warmup_steps: float, peak: float) -> float:
        """As `Schedule.rate`."""
        progress = (step + 1) / total_steps
        if progress < (warmup_steps - self.warmup_before) / total_steps:
            return rising(step + self.warmup_before, warmup_steps, peak)
        return float(peak * (1 - progress) ** self.power)


class ConstantSchedule(Section):
    """The peak rate for all updates after the warm-up."""

    kind: Literal["constant"] = "constant"
    """Names this schedule."""

    def rate(self, step: int, total_steps: int, warmup_steps: float, peak: float) -> float:
        """As `Schedule.rate`."""
        return rising(step, warmup_steps, peak) if step + 1 < warmup_steps else peak


def learning_rate(schedule: Schedule, step: int, total_steps: int, warmup_steps: float, peak: float) -> float:
    """The learning rate of the update after `step` completed updates (0 ≤ step < total_steps).

    `warmup_steps` may be fractional, because a warm-up share times the total is. Raises `RecipeError` for a step
    outside the phase, or a warm-up longer than it.
    """
    if not 0 <= step < total_steps:
        raise RecipeError(f"no learning rate for step {step} of {total_steps}; steps run from 0 to {total_steps - 1}")
    # A longer warm-up would silently end below the peak rate.
    if not 0 <= warmup_steps <= total_steps:
        raise RecipeError(
            f"warm-up of {warmup_steps} steps in a phase of {total_steps}; the warm-up must be between 0 and the "
            "number of steps"
        )
    return schedule.rate(step, total_steps, warmup_steps, peak)


def rising(step: int, warmup_steps: float, peak: float) -> float:
    """The rate during the warm-up."""
    return peak * (step + 1) / warmup_steps


def remaining(step: int, total_steps: int, warmup_steps: float) -> float:
    """The remaining share of the decay: 1 at the end of the warm-up, 0 one update after the last."""
    past = step - warmup_steps
    return 1 - past / (total_steps - warmup_steps) if past > 0 else 1.0


def above(floor: float, share: float) -> float:
    """Map a share in [0, 1] linearly to [`floor`, 1]."""
    return floor + (1 - floor) * share


class CosineSchedule(Section):
    """Half a cosine after the warm-up, down to `floor`, which it would reach one update after the last."""

    # Loshchilov and Hutter 2017 (SGDR), without restarts.

    kind: Literal["cosine"] = "cosine"
    """Names this schedule."""
    floor: float = Field(0.0, ge=0, le=1)
    """Final learning rate, as a share of the peak."""

    def rate(self, step: int, total_steps: int, warmup_steps: float, peak: float) -> float:
        """As `Schedule.rate`."""
        if step + 1 < warmup_steps:
            return rising(step, warmup_steps, peak)
        share = (1 - math.cos(math.pi * remaining(step, total_steps, warmup_steps))) / 2
        return peak * above(self.floor, share)


class WsdSchedule(Section):
    """The peak rate after the warm-up, then a decay at the end of the phase; it would reach 0 one update after the
    last."""

    # Warm-up, stable, decay: Hu et al. 2024 (MiniCPM). Only the decay depends on the length of the phase, so one long
    # stable part can be followed by decays of any length: a phase with `decay = 1` and no warm-up starts one from any
    # checkpoint (`train.init_from`), or follows a `constant` phase of the same recipe whose end is moved (`end_after`).
    # Hägele et al. 2024 found the decay 1 - √t over the last 10 to 20 % as good as a cosine over the entire phase.

    kind: Literal["wsd"] = "wsd"
    """Names this schedule."""
    decay: float = Field(0.1, gt=0, le=1)
    """Share of the phase, at its end, during which the rate decays."""
    shape: Literal["linear", "1-sqrt"] = "1-sqrt"
    """Shape of the decay: linear, or 1 - √t, where t is the elapsed share of the decay; the latter falls faster at
    first."""

    def rate(self, step: int, total_steps: int, warmup_steps: float, peak: float) -> float:
        """As `Schedule.rate`."""
        if step + 1 < warmup_steps:
            return rising(step, warmup_steps, peak)
        # Recipes reject a warm-up that overlaps the decay; the max keeps the rate from falling before its peak.
        start = max(warmup_steps, total_steps - self.decay * total_steps)
        over = max(0.0, step - start) / max(total_steps - start, 1)
        return peak * (1 - (math.sqrt(over) if self.shape == "1-sqrt" else over))
