"""How long the rest of a run takes: what is left of all phases, their scores and checkpoints, and the score at the end.

What a step costs is known of the phase that is under way alone. Others are taken to cost as much for each token of room
(sequences times length), which leaves out that attention costs more in longer sequences.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from bertwright.train.phases import Phase

FORWARD = 1 / 3
"""What scoring costs of training, for each token of room, until it has been measured."""

LOOKED_AT, PARTS = 200, 10
"""How many of the last steps say how much the pace varies, and in how many parts, one after another."""


@dataclass
class Forecast:
    """Seconds that are left, by what was measured since the program started."""

    phases: Sequence[Phase]
    scored_after: int = 0
    """Tokens of room of the held-out sequences that are scored after training."""
    scoring: float | None = None
    """Seconds of the last score for each token of room."""
    saving: float = 0.0
    """Seconds of the last checkpoint."""
    paces: list[float] = field(default_factory=list)
    """Seconds of the last steps, for each token of room."""

    def scored(self, phase: Phase, seconds: float) -> None:
        """Note how long a score took."""
        self.scoring = seconds / (phase.heldout_room or 1)

    def stepped(self, phase: Phase, seconds: Sequence[float]) -> None:
        """Note how long steps of `phase` took, as if each had had its full batch."""
        self.paces = [*self.paces, *(taken / phase.room for taken in seconds)][-LOOKED_AT:]

    def interval(self, phase: Phase, step: int, spent: float = 0.0) -> tuple[float, float]:
        """`remaining` if all steps to come were as fast, and as slow, as the last steps were in their fastest and their
        slowest part; of a single step both are the same.

        Parts and not single steps: steps differ by their sequences, which evens out, and by what else the machine does,
        which lasts.
        """
        size = -(-len(self.paces) // PARTS)
        parts = [statistics.fmean(self.paces[at : at + size]) for at in range(0, len(self.paces), size)]
        low, high = (self.remaining(phase, step, pace * phase.room, spent) for pace in (min(parts), max(parts)))
        return low, high

    def remaining(self, phase: Phase, step: int, pace: float, spent: float = 0.0) -> float:
        """Seconds from `step` of `phase` to the end, where a step takes `pace` seconds and `spent` have been of it."""
        # Per token of room and not per step: other phases have other lengths and batches.
        training = pace / phase.room
        scoring = self.scoring if self.scoring is not None else training * FORWARD
        # The stage `evaluate` that follows scores too, and whoever waits for the run waits for it.
        seconds = self.scored_after * scoring
        for later in self.phases[phase.index :]:
            done, gone = (step, spent) if later.index == phase.index else (0, 0.0)
            end = later.steps
            if later.budget:
                end = min(end, done + math.ceil(max(later.budget - gone, 0.0) / (later.room * training)))
            seconds += (end - done) * later.room * training
            seconds += _times(later.evaluate_every, done, end) * later.heldout_room * scoring
            seconds += _times(later.checkpoint_every, done, end) * self.saving
        return seconds


def _times(every: int, done: int, steps: int) -> int:
    """How often what happens `every` so many steps, and at the end, happens after step `done`."""
    return -(-steps // every) - done // every
