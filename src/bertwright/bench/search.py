"""Which ways of computing a step are tried, in which order, and what is learnt of them. Knows no torch.

The global batch is the recipe's: it decides what is learnt, and how it is cut only how fast. A line of candidates has
one engine and keeps, or computes again, what backward needs; along it micro-batches double, and the forward passes of a
step follow from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

Outcome = Literal["trained", "out-of-memory", "too-slow", "failed", "left-out"]
GAIN = 1.02
"""How many times as fast the next size must be to count as faster."""
PATIENCE = 2
"""Sizes in a row that are no faster, after which a line ends."""


@dataclass(frozen=True)
class Candidate:
    """One way of computing a step."""

    engine: str
    """As `train.engine` names it."""
    checkpoint_activations: bool
    micro_batch: int
    """Sequences of a forward pass on a rank."""

    def keys(self, phase: int) -> dict[str, Any]:
        """The keys of the recipe that say it."""
        keys = {f"train.phases.{phase}.micro_batch": self.micro_batch, "train.engine": self.engine}
        return keys | {"train.checkpoint_activations": self.checkpoint_activations}


@dataclass(frozen=True)
class Trial:
    """What became of a candidate."""

    candidate: Candidate
    outcome: Outcome
    passes: int = 0
    """Forward passes of a rank in each step."""
    seconds: float = 0.0
    """Of a step of the whole batch."""
    memory_bytes: int = 0
    """Most memory of the first rank."""
    why: str = ""
    """Of what was not trained."""


def step_seconds(one: float, two: float, passes: int) -> float:
    """Seconds of a step of so many forward passes, from those of a step of one and of a step of two.

    A pass more takes what two take more than one; the rest, the update and the sum over ranks, is once a step.
    """
    each = max(two - one, two / 4)  # a machine that is busy meanwhile may make two the faster
    return max(one - each, 0.0) + passes * each


def sizes(share: int, first: int) -> list[int]:
    """Micro-batches for a rank with `share` sequences a step: powers of two from about `first` on, and all at once."""
    size = 1
    while size * 2 <= min(first, share):
        size *= 2
    found = []
    while size < share:
        found.append(size)
        size *= 2
    return [*found, share]


def search(
    lines: Sequence[tuple[str, bool]], tried: Sequence[int], attempt: Callable[[Candidate], Trial]
) -> Iterator[Trial]:
    """Try sizes upwards on each line, an engine and whether activations are checkpointed, while they get faster and
    fit; where the smallest of them does not fit, downwards until one does, and on while they get faster."""
    for engine, checkpointing in lines:
        line = partial(Candidate, engine, checkpointing)
        upwards = list(_upwards(line, tried, attempt))
        yield from upwards
        if upwards[0].outcome in ("out-of-memory", "too-slow"):
            yield from _downwards(line, tried[0], attempt)


def _upwards(
    line: Callable[[int], Candidate], tried: Sequence[int], attempt: Callable[[Candidate], Trial]
) -> Iterator[Trial]:
    fastest, behind, ended = 0.0, 0, ""
    for size in tried:
        if ended:
            yield Trial(line(size), "left-out", why=ended)
            continue
        trial = attempt(line(size))
        yield trial
        if trial.outcome != "trained":
            # A larger one takes more memory, and time; what fails for another reason fails whatever the size.
            ended = f"{size} {'failed' if trial.outcome == 'failed' else f'was {trial.outcome}'}"
        elif not fastest or fastest / trial.seconds >= GAIN:
            fastest, behind = trial.seconds, 0
        else:
            behind += 1
            ended = f"{behind} smaller ones in a row were no faster" if behind >= PATIENCE else ""


def _downwards(line: Callable[[int], Candidate], size: int, attempt: Callable[[Candidate], Trial]) -> Iterator[Trial]:
    # The largest that fits is not for that the fastest: one that just does may wait for memory at every step.
    fastest, behind = 0.0, 0
    while size > 1 and behind < PATIENCE:
        size //= 2
        trial = attempt(line(size))
        yield trial
        if trial.outcome == "failed":
            return
        if trial.outcome == "trained" and (not fastest or fastest / trial.seconds >= GAIN):
            fastest, behind = trial.seconds, 0
        elif fastest:
            behind += 1


def best(trials: Sequence[Trial]) -> Trial | None:
    """The fastest; of two within the gain that counts the one that takes less memory."""
    trained = [trial for trial in trials if trial.outcome == "trained"]
    if not trained:
        return None
    fastest = min(trial.seconds for trial in trained)
    return min((t for t in trained if t.seconds <= fastest * GAIN), key=lambda trial: trial.memory_bytes)
