"""The number and lengths of examples, and how many of them each step of a phase takes; everything in closed form.

Step k takes the rows that follow those of all earlier steps, whatever their sizes, so it is a function of k alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any


@dataclass(frozen=True)
class Sequences:
    """The examples of one plan set or of one phase's own data."""

    per_pass: tuple[int, ...]
    """Number of examples in each pass; () if not known."""
    mean_length: float
    """Mean length in tokens, including special tokens."""
    deviation: float
    """Standard deviation of the lengths, in tokens."""
    longest: int
    """Length of the longest example, in tokens; the maximum that the phase allows if it is not known."""

    @property
    def mean_square(self) -> float:
        """Mean square of the lengths."""
        return self.mean_length**2 + self.deviation**2

    def of_epochs(self, epochs: float) -> float:
        """The sequences in `epochs` epochs: epoch e takes pass e modulo the number of passes."""
        whole, part, passes = int(epochs), epochs % 1, self.per_pass
        return sum(passes[e % len(passes)] for e in range(whole)) + part * passes[whole % len(passes)]

    def epochs(self, sequences: float) -> float | None:
        """The epochs that `sequences` sequences are, the inverse of `of_epochs`; None if the passes are not known."""
        if not (cycle := sum(self.per_pass)):
            return None
        cycles, left = divmod(sequences, cycle)
        epochs = cycles * len(self.per_pass)
        for size in self.per_pass:
            if left <= size:
                break
            left, epochs = left - size, epochs + 1
        return epochs + (left / size if size else 0)

    @classmethod
    def guessed(cls, per_pass: tuple[int, ...], mean_length: float, length: int) -> Sequences:
        """Sequences with a known mean length, distributed as pairs of documents are: some at full length, the rest
        uniform over shorter lengths."""
        full = max(0.0, 2 * mean_length / length - 1)
        square = (full + (1 - full) / 3) * length**2
        return cls(per_pass, mean_length, math.sqrt(max(0.0, square - mean_length**2)), length)

    @classmethod
    def counted(cls, per_pass: Iterable[int], counts: Mapping[str, Any], length: int) -> Sequences:
        """Sequences whose lengths were counted, in a phase that allows up to `length` tokens."""
        mean, deviation = float(counts["mean_length"]), float(counts["deviation"])
        return cls(tuple(map(int, per_pass)), mean, deviation, int(counts["longest"]) or length)


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
