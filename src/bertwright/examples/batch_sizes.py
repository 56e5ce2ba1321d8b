"""The global batch of each step of a phase, where it grows in steps to its full size; all in closed form.

Step k takes the rows after those of the steps before it, however many each took, so it is a function of k alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class BatchSizes:
    """The sizes by step."""

    full: int
    """Examples of a step over all ranks, once it has grown."""
    warmup: tuple[tuple[int, int], ...] = ()
    """Pairs [step, examples]: from that step on; the first is of step 0 and the last has the full size. Empty: every
    step has it."""

    def at(self, step: int) -> int:
        """The examples of a step."""
        return next(size for start, size in reversed(self._sizes) if start <= step)

    def before(self, step: int) -> int:
        """The examples of all steps before this one."""
        return sum((min(end, step) - start) * size for start, end, size in self._spans() if start < step)

    def step_of(self, example: int) -> int:
        """The step that takes the example of this number in the phase, from 0."""
        first, start, size = next(
            (self.before(start), start, size) for start, size in reversed(self._sizes) if self.before(start) <= example
        )
        return start + (example - first) // size

    def steps_of(self, amount: float, each: float = 1.0) -> int:
        """The fewest steps that hold so much, where an example holds `each`; a begun step counts whole."""
        for start, end, size in self._spans():
            steps = start + math.ceil((amount - each * self.before(start)) / (each * size))
            if steps <= end:
                return steps
        raise AssertionError("the last size has no end")

    @property
    def _sizes(self) -> tuple[tuple[int, int], ...]:
        return self.warmup or ((0, self.full),)

    def _spans(self) -> Iterator[tuple[int, int, int]]:
        """Start, end and size of each run of steps of one size; the last ends nowhere."""
        for (start, size), (end, _) in pairwise((*self._sizes, (2**62, 0))):
            yield start, end, size
