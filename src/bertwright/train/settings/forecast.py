"""Forecasts the remaining time of a run: the rest of all phases, their scores and checkpoints, and the final score.

The cost of a step is known only for the current phase. Other phases are assumed to cost the same per token slot
(sequences times length), which ignores that attention costs more for longer sequences.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from bertwright.train.settings.phases import Phase

FORWARD = 1 / 3
"""Cost of scoring relative to training, per token slot, until it has been measured."""

LOOKED_AT, PARTS = 200, 10
"""Number of recent steps used to estimate how much the pace varies, and number of consecutive parts they are split
into."""


@dataclass
class Forecast:
    """Remaining seconds, estimated from measurements since the program started."""

    phases: Sequence[Phase]
    scored_after: int = 0
    """Token slots of the held-out sequences that are scored after training."""
    scoring: float | None = None
    """Seconds per token slot of the last scoring."""
    saving: float = 0.0
    """Seconds taken by the last checkpoint."""
    paces: list[float] = field(default_factory=list)
    """Seconds per token slot of recent steps."""

    def record_scoring(self, phase: Phase, seconds: float) -> None:
        """Record how long scoring took."""
        self.scoring = seconds / (phase.heldout_room or 1)

    def record_steps(self, phase: Phase, seconds: Sequence[float]) -> None:
        """Record how long steps of `phase` took, scaled to a full batch each."""
        self.paces = [*self.paces, *(taken / phase.room for taken in seconds)][-LOOKED_AT:]

    def interval(self, phase: Phase, step: int, spent: float = 0.0) -> tuple[float, float]:
        """Return `remaining` for the fastest and the slowest part of the recent steps; with a single step both are
        equal.

        Parts are used instead of single steps: steps differ by their sequences, which averages out, and by other load
        on the machine, which lasts.
        """
        size = -(-len(self.paces) // PARTS)
        parts = [statistics.fmean(self.paces[at : at + size]) for at in range(0, len(self.paces), size)]
        low, high = (self.remaining(phase, step, pace * phase.room, spent) for pace in (min(parts), max(parts)))
        return low, high

    def remaining(self, phase: Phase, step: int, pace: float, spent: float = 0.0) -> float:
        """Return the seconds from `step` of `phase` to the end of the run.

        `pace`: seconds per step; `spent`: seconds of this phase that have passed.
        """
        # Per token slot, not per step: other phases have other lengths and batch sizes.
        training = pace / phase.room
        scoring = self.scoring if self.scoring is not None else training * FORWARD
        # The `evaluate` stage that follows scores too, and is part of the waiting time of the run.
        seconds = self.scored_after * scoring
        for later in self.phases[phase.index :]:
            done, gone = (step, spent) if later.index == phase.index else (0, 0.0)
            end = later.steps
            if later.budget:
                end = min(end, done + math.ceil(max(later.budget - gone, 0.0) / (later.room * training)))
            seconds += (end - done) * later.room * training
            seconds += later.times(later.evaluate_every, done, end) * later.heldout_room * scoring
            seconds += later.times(later.checkpoint_every, done, end) * self.saving
        return seconds
