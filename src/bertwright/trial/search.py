"""Which configurations of a training step are tried, in which order, and what their trials show. Does not import torch.

The recipe fixes the global batch, which decides what is learnt; how it is split only affects speed. A line of
candidates has one engine and either keeps activations or recomputes them in the backward pass; along a line
micro-batches double, and the number of forward passes per step follows from their size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

Outcome = Literal["trained", "out-of-memory", "too-slow", "failed", "left-out"]
GAIN = 1.02
"""Factor by which the next size must be faster to count as an improvement."""
PATIENCE = 2
"""Number of consecutive sizes without improvement after which a line ends."""


@dataclass(frozen=True)
class Candidate:
    """One configuration of a training step."""

    engine: str
    """Name as in `train.engine`; the recipe's own engine has the settings that the recipe gives it."""
    checkpoint_activations: bool
    micro_batch: int
    """Sequences per forward pass on each rank."""


@dataclass(frozen=True)
class Trial:
    """The result of trying a candidate."""

    candidate: Candidate
    outcome: Outcome
    passes: int = 0
    """Forward passes per step on each rank."""
    seconds: float = 0.0
    """Seconds of a step of the full global batch."""
    memory_bytes: int = 0
    """Peak memory of rank 0."""
    why: str = ""
    """Reason why the candidate was not trained."""


def step_seconds(one: float, two: float, passes: int) -> float:
    """Seconds of a step with `passes` forward passes, from those of a step with one pass and of a step with two.

    Each further pass costs the difference of the two; the remainder, for the update and the all-reduce, occurs once a
    step.
    """
    each = max(two - one, two / 4)  # under other load, two passes may be measured as faster than one
    return max(one - each, 0.0) + passes * each


def sizes(share: int, first: int) -> list[int]:
    """Micro-batches for a rank with `share` sequences per step: powers of two from about `first` up to `share`
    itself."""
    size = 1
    while size * 2 <= min(first, share):
        size *= 2
    found = []
    while size < share:
        found.append(size)
        size *= 2
    return [*found, share]


def halves(size: int) -> list[int]:
    """Half of a micro-batch, half of that, and so on down to 1."""
    return [size // 2, *halves(size // 2)] if size > 1 else []


class Sizes(NamedTuple):
    """The micro-batches of each line."""

    tried: Sequence[int]
    """In ascending order."""
    smaller: Sequence[int] = ()
    """In descending order, for the case that the smallest of `tried` does not fit."""


def search(lines: Sequence[tuple[str, bool]], sizes: Sizes, attempt: Callable[[Candidate], Trial]) -> Iterator[Trial]:
    """Try sizes upwards on each line (engine, checkpointing) while they fit and get faster; if the smallest one does
    not fit, try the smaller ones until one fits, and on while they get faster."""
    for engine, checkpointing in lines:
        line = partial(Candidate, engine, checkpointing)
        upwards = list(_upwards(line, sizes.tried, attempt))
        yield from upwards
        if upwards[0].outcome in ("out-of-memory", "too-slow"):
            yield from _downwards(line, sizes.smaller, attempt)


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
            # A larger size takes more memory and time; other failures do not depend on the size.
            ended = f"{size} {'failed' if trial.outcome == 'failed' else f'was {trial.outcome}'}"
        elif not fastest or fastest / trial.seconds >= GAIN:
            fastest, behind = trial.seconds, 0
        else:
            behind += 1
            ended = f"{behind} consecutive smaller ones were not faster" if behind >= PATIENCE else ""


def _downwards(
    line: Callable[[int], Candidate], smaller: Sequence[int], attempt: Callable[[Candidate], Trial]
) -> Iterator[Trial]:
    # The largest size that fits is not always the fastest: near the limit every step may wait for memory.
    fastest, behind = 0.0, 0
    for size in smaller:
        trial = attempt(line(size))
        yield trial
        if trial.outcome == "failed":
            return
        if trial.outcome == "trained" and (not fastest or fastest / trial.seconds >= GAIN):
            fastest, behind = trial.seconds, 0
        # Sizes before the first one that fits are not slower ones, however many they are.
        elif fastest and (behind := behind + 1) == PATIENCE:
            return


def best(trials: Sequence[Trial]) -> Trial | None:
    """The fastest trial; among trials within `GAIN` of it, the one with the lowest memory. None if none was trained."""
    trained = [trial for trial in trials if trial.outcome == "trained"]
    if not trained:
        return None
    fastest = min(trial.seconds for trial in trained)
    return min((t for t in trained if t.seconds <= fastest * GAIN), key=lambda trial: trial.memory_bytes)
