"""The learning rate as a pure function of the update's number. Knows no torch.

A schedule is a section of the recipe, its parameters are its keys, and its formula is its method: a new one is a class,
in a file of its own or here, and its name in the union (`optim.config`). Warm-up rises in a straight line; update
`warmup_steps` (counted from 1) has the peak rate, so no update is wasted at rate 0.
"""

from __future__ import annotations

from typing import Literal, Protocol

from pydantic import Field

from bertwright.core.config import Section
from bertwright.core.errors import RecipeError


class Schedule(Protocol):
    """A section of the recipe that says the rate of each update."""

    def rate(self, step: int, total_steps: int, warmup_steps: float, peak: float) -> float:
        """The rate of the update that follows `step` applied ones of `total_steps`."""


class LinearSchedule(Section):
    """After the warm-up straight down; it would reach the floor one update after the last."""

    kind: Literal["linear"] = "linear"
    """Names this schedule."""
    floor: float = Field(0.0, ge=0, le=1)
    """Where it ends, as a share of the peak."""

    def rate(self, step: int, total_steps: int, warmup_steps: float, peak: float) -> float:
        """As `Schedule.rate`."""
        if step + 1 < warmup_steps:
            return rising(step, warmup_steps, peak)
        return peak * above(self.floor, remaining(step, total_steps, warmup_steps))


class PolySchedule(Section):
    """After the warm-up a power of what `linear` has, by default its square root."""

    kind: Literal["poly"] = "poly"
    """Names this schedule."""
    power: float = Field(0.5, gt=0)
    """Exponent of the share of the decay that is left: below 1 the rate falls late, above 1 early."""

    def rate(self, step: int, total_steps: int, warmup_steps: float, peak: float) -> float:
        """As `Schedule.rate`."""
        if step + 1 < warmup_steps:
            return rising(step, warmup_steps, peak)
        return float(peak * remaining(step, total_steps, warmup_steps) ** self.power)


class PolyNvidiaSchedule(Section):
    """NVIDIA DeepLearningExamples' PolyWarmUpScheduler, and MLPerf's.

    Its decay, a square root there, is measured from the start of training, not from the end of warm-up, so the rate
    falls by 1 - √(1 - warm-up share) at once (15.4 % in phase 1), and the last update has rate 0.
    """

    kind: Literal["poly_nvidia"] = "poly_nvidia"
    """Names this schedule."""
    power: float = Field(0.5, gt=0)
    """Exponent of the share of the phase that is left."""
    warmup_before: int = Field(0, ge=0)
    """Updates of the warm-up that are reckoned to lie before the phase, which is that much further on its way up: 76 of
    MLPerf's warm-up of 287 steps with start_warmup_step -76. The warm-up must be a number of steps, and longer."""

    def rate(self, step: int, total_steps: int, warmup_steps: float, peak: float) -> float:
        """As `Schedule.rate`."""
        progress = (step + 1) / total_steps
        if progress < (warmup_steps - self.warmup_before) / total_steps:
            return rising(step + self.warmup_before, warmup_steps, peak)
        return float(peak * (1 - progress) ** self.power)


class ConstantSchedule(Section):
    """The peak after the warm-up."""

    kind: Literal["constant"] = "constant"
    """Names this schedule."""

    def rate(self, step: int, total_steps: int, warmup_steps: float, peak: float) -> float:
        """As `Schedule.rate`."""
        return rising(step, warmup_steps, peak) if step + 1 < warmup_steps else peak


def learning_rate(schedule: Schedule, step: int, total_steps: int, warmup_steps: float, peak: float) -> float:
    """The rate of the update that follows `step` applied ones (0 ≤ step < total_steps).

    `warmup_steps` may be fractional, as its share times the total is. `RecipeError` for a step outside the phase.
    """
    if not 0 <= step < total_steps:
        raise RecipeError(f"no learning rate for step {step} of {total_steps}; steps run from 0 to {total_steps - 1}")
    # A warm-up longer than the phase would end at a rate below the peak, and nobody would notice.
    if not 0 <= warmup_steps <= total_steps:
        raise RecipeError(
            f"warm-up of {warmup_steps} steps in a phase of {total_steps}; it must lie between 0 and that"
        )
    return schedule.rate(step, total_steps, warmup_steps, peak)


def rising(step: int, warmup_steps: float, peak: float) -> float:
    """The rate during the warm-up."""
    return peak * (step + 1) / warmup_steps


def remaining(step: int, total_steps: int, warmup_steps: float) -> float:
    """The share of the decay that is left: 1 at the end of the warm-up, 0 one update after the last."""
    past = step - warmup_steps
    return 1 - past / (total_steps - warmup_steps) if past > 0 else 1.0


def above(floor: float, share: float) -> float:
    """A share of the way from 0 to 1 as one of the way from `floor` to 1."""
    return floor + (1 - floor) * share
