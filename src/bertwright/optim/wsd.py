"""Warm-up, stable, decay: the peak rate for most of a phase, and a decay at its end (Hu et al. 2024, MiniCPM).

Only the decay depends on the length of the phase, so one long stable part can be followed by decays of any length: a
phase with `decay = 1` and no warm-up starts one from any checkpoint (`train.init_from`), or follows a `constant` phase
of the same recipe whose end is moved (`end_after`). Hägele et al. 2024 found the decay 1 - √t over the last 10 to 20 %
as good as a cosine over the entire phase. Does not import torch.
"""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from bertwright.core.config import Section
from bertwright.optim.schedule import rising


class WsdSchedule(Section):
    """The peak rate after the warm-up, then a decay at the end of the phase; it would reach 0 one update after the
    last."""

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
