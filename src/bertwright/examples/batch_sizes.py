"""The global batch size of each step of a phase, with an optional batch warm-up; everything in closed form.

Step k takes the rows that follow those of all earlier steps, whatever their sizes, so it is a function of k alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class BatchSizes:
    """The batch sizes by step."""

    full: int
    """Examples per step over all ranks, after the warm-up."""
    warmup: tuple[tuple[int, int], ...] = ()
    """Pairs [step, examples]: the batch size from that step on. The first pair is for step 0 and the last has the full
    size. Empty: every step has the full size."""

    def at(self, step: int) -> int:
        """The number of examples of a step."""
        return next(size for start, size in reversed(self._sizes) if start <= step)

    def before(self, step: int) -> int:
        """The number of examples of all earlier steps together."""
        return sum((min(end, step) - start) * size for start, end, size in self._spans() if start < step)

    def step_of(self, example: int) -> int:
        """The step that takes this example, numbered from 0 within the phase."""
        first, start, size = next(
            (self.before(start), start, size) for start, size in reversed(self._sizes) if self.before(start) <= example
        )
        return start + (example - first) // size

    def steps_of(self, amount: float, each: float = 1.0) -> int:
        """The minimum number of steps that hold `amount`, at `each` per example; a partial step counts as one."""
        for start, end, size in self._spans():
            steps = start + math.ceil((amount - each * self.before(start)) / (each * size))
            if steps <= end:
                return steps
        raise AssertionError("the last size has no end")

    @property
    def _sizes(self) -> tuple[tuple[int, int], ...]:
        return self.warmup or ((0, self.full),)

    def _spans(self) -> Iterator[tuple[int, int, int]]:
        """Start, end and size of each run of steps of one size; the last run has no end (2^62)."""
        for (start, size), (end, _) in pairwise((*self._sizes, (2**62, 0))):
            yield start, end, size
