"""The learning rate as a pure function of the update's number.

Warm-up rises in a straight line; update `warmup_steps` (counted from 1) has the peak rate, so no update is wasted
at rate 0. The decay of `linear` and `poly` starts from the peak and would reach 0 one update after the last.
"""

from __future__ import annotations

from typing import assert_never

from bertwright.core.errors import RecipeError
from bertwright.optim.config import Schedule


def learning_rate(schedule: Schedule, step: int, total_steps: int, warmup_steps: float, peak: float) -> float:
    """The rate of the update that follows `step` applied ones (0 ≤ step < total_steps).

    - `linear`: after warm-up, straight down.
    - `poly`: after warm-up, the square root of what `linear` has.
    - `poly_nvidia`: NVIDIA DeepLearningExamples' PolyWarmUpScheduler. Its square-root decay is measured from the
      start of training, not from the end of warm-up, so the rate falls by 1 - √(1 - warm-up share) at once (15.4 %
      in phase 1), and the last update has rate 0. `warmup_steps` may be fractional, as its share times the total is.
    - `constant`: the peak after warm-up.
    """
    if not 0 <= step < total_steps:
        raise RecipeError(f"no learning rate for step {step} of {total_steps}; steps run from 0 to {total_steps - 1}")
    if not 0 <= warmup_steps <= total_steps:
        raise RecipeError(
            f"warm-up of {warmup_steps} steps in a phase of {total_steps}; it must lie between 0 and that"
        )
    if schedule == "poly_nvidia":
        return _poly_nvidia(step, total_steps, warmup_steps, peak)
    if step + 1 < warmup_steps:
        return peak * (step + 1) / warmup_steps
    past = step - warmup_steps
    remaining = 1 - past / (total_steps - warmup_steps) if past > 0 else 1.0
    match schedule:
        case "linear":
            return peak * remaining
        case "poly":
            return float(peak * remaining**0.5)
        case "constant":
            return peak
        case _:
            assert_never(schedule)


def _poly_nvidia(step: int, total_steps: int, warmup_steps: float, peak: float) -> float:
    progress = (step + 1) / total_steps
    if progress < warmup_steps / total_steps:
        return peak * (step + 1) / warmup_steps
    return float(peak * (1 - progress) ** 0.5)
