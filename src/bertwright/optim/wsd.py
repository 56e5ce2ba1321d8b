"""Warm-up, stable, decay: the peak for most of a phase, and a fall at its end (Hu et al. 2024, MiniCPM).

Nothing but the end depends on the length of the phase, so one long stable part serves decays of any length: a phase
with `decay = 1` and no warm-up starts one from any checkpoint (`train.init_from`), or follows a `constant` phase of the
same recipe whose end is moved (`end_after`). Hägele et al. 2024 found the decay 1 - √t over the last 10 to 20 % as good
as a cosine over all. Knows no torch.
"""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from bertwright.core.config import Section
from bertwright.optim.schedule import rising


class WsdSchedule(Section):
    """After the warm-up the peak, and in the last share of the phase down; it would be 0 one update after the last."""

    kind: Literal["wsd"] = "wsd"
    """Names this schedule."""
    decay: float = Field(0.1, gt=0, le=1)
    """Share of the phase, at its end, in which the rate falls."""
    shape: Literal["linear", "1-sqrt"] = "1-sqrt"
    """How it falls: straight, or as 1 - √t of the share t of the decay that is over, which falls early."""

    def rate(self, step: int, total_steps: int, warmup_steps: float, peak: float) -> float:
        """As `Schedule.rate`."""
        if step + 1 < warmup_steps:
            return rising(step, warmup_steps, peak)
        # A warm-up that reaches into the decay is refused in a recipe; a rate that fell before its peak would be wrong.
        start = max(warmup_steps, total_steps - self.decay * total_steps)
        over = max(0.0, step - start) / max(total_steps - start, 1)
        return peak * (1 - (math.sqrt(over) if self.shape == "1-sqrt" else over))
