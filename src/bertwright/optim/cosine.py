"""Half a cosine from peak to floor (Loshchilov and Hutter 2017, SGDR, without restarts). Does not import torch."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from bertwright.core.config import Section
from bertwright.optim.schedule import above, remaining, rising


class CosineSchedule(Section):
    """Half a cosine after the warm-up, down to `floor`, which it would reach one update after the last."""

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
