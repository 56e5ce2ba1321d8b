"""Checks whether training leaves what is expected of it: the loss of the recipe, the time of the forecast."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bertwright.train.config import ExpectedLoss
from bertwright.train.settings.phases import Phase

OUTSIDE = "outside_band"
"""Key of a metrics row that holds this message."""
Bands = Sequence[tuple[float, float]]
"""For each phase the shortest and the longest expected seconds of a step with a full batch; empty: not forecast."""
ENOUGH = 20
"""Number of steps whose median is compared: the first ones are slower, while kernels are chosen and memory grows."""


def outside(bands: Sequence[ExpectedLoss], row: Mapping[str, Any], steps: int) -> str:
    """Return what is wrong with the loss of a metrics row covering the last `steps` steps, or "" if nothing is.

    The loss is the sum of the row's terms, a mean over its steps. A loss that is not a number is outside any band; if
    there was nothing to predict, there is no loss.
    """
    last = int(row["total_steps"])
    due = [band for band in bands if last - steps < band.step <= last]
    terms = [value for name, value in row.items() if name.endswith("_loss") and not name.startswith("heldout_")]
    found = [value for value in terms if value is not None]
    loss = math.fsum(found)
    violated = [band for band in due if found and not band.low <= loss <= band.high]
    if not violated:
        return ""
    band = violated[-1]
    where = "below" if loss < band.low else "above" if loss > band.high else "outside"
    return (
        f"step {last:,}: the training loss {loss:.3f} is {where} the {band.low:g} to {band.high:g} that the recipe "
        f"expects at step {band.step:,} (train.expected)"
    )


@dataclass
class ExpectedTime:
    """Reports once in a phase that its steps are outside the band."""

    bands: Bands = ()
    phase: int = -1
    """The phase of the steps so far."""
    seconds: list[float] = field(default_factory=list)
    """Seconds of its steps in this start, until there are enough."""

    def outside(self, phase: Phase, seconds: Sequence[float]) -> str:
        """Return what is wrong with the time of the steps of `phase`, of which the last ones took `seconds`, scaled to
        a full batch each; "" if nothing is, or if it has been logged."""
        if self.phase != phase.index:
            self.phase, self.seconds = phase.index, []
        if phase.index >= len(self.bands) or len(self.seconds) >= ENOUGH:
            return ""
        self.seconds += seconds
        if len(self.seconds) < ENOUGH:
            return ""
        low, high = self.bands[phase.index]
        taken = statistics.median(self.seconds)
        if low <= taken <= high:
            return ""
        where = "less than" if taken < low else "more than"
        return (
            f"phase {phase.index}: a step takes {taken:.3g} s, {where} the {low:.3g} to {high:.3g} s of the forecast; "
            "the time left follows the measurement"
        )
