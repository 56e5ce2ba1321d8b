"""What is observed of the steps since the row before: the sums that a row of metrics is made of."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bertwright.examples.batch import MicroBatch, batch_hash, hash_digits
from bertwright.train.forecast import Forecast
from bertwright.train.phases import Phase
from bertwright.train.ranks import Ranks
from bertwright.train.state import State
from bertwright.train.step import StepResult


@dataclass
class Window:
    """Sums over the steps since the row before; losses and norms of applied updates only."""

    steps: int = 0
    skipped: int = 0
    losses: dict[str, float] = field(default_factory=dict)
    accuracies: Mapping[str, float] = field(default_factory=dict)
    """Of the last step alone, where they were counted."""
    grad_norm: float = 0.0
    rate: float = 0.0
    """Learning rate of the last step."""
    tokens: int = 0
    flops: int = 0
    """Operations of this rank."""
    waited: float = 0.0
    times: list[float] = field(default_factory=list)
    """Seconds of each step."""
    began: float = field(default_factory=time.perf_counter)
    part_ends: bool = False
    """Whether a part of the phase's budget of time ended with the last step."""

    def add(self, result: StepResult, tokens: int, waited: float) -> float:
        """Take one step in; returns the seconds it took, from the end of the step before."""
        now = time.perf_counter()
        took, self.began = now - self.began, now
        self.steps += 1
        self.skipped += not result.applied
        for name, loss in result.losses.items():
            # The loss of a dropped step may be NaN, and would make the mean of the whole window one.
            self.losses[name] = self.losses.get(name, 0.0) + (loss if result.applied else 0.0)
        self.accuracies = result.accuracies
        self.grad_norm += result.grad_norm if result.applied else 0.0
        self.tokens += tokens
        self.waited += waited
        self.times.append(took)
        return took

    @property
    def seconds(self) -> float:
        """Of all its steps."""
        return sum(self.times)

    def row(self, phase: Phase, state: State, scores: Mapping[str, float | None]) -> dict[str, Any]:
        """The line for these steps, the last of which led to `state`; NaN where no update was applied."""
        applied = self.steps - self.skipped
        row = {
            "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "phase": phase.index,
            "step": state.data_step,
            "steps": phase.steps,
            "total_steps": state.total_steps,
            "optimizer_step": state.optimizer_step,
            "skipped": self.skipped,
            **{f"{name}_loss": _mean(loss, applied) for name, loss in self.losses.items()},
            **{f"{name}_accuracy": share for name, share in self.accuracies.items()},
            "grad_norm": _mean(self.grad_norm, applied),
            "learning_rate": self.rate,
            **({"loss_scale": state.scale.factor} if state.scale else {}),
            "tokens_seen": state.tokens_seen,
            "tokens_per_second": self.tokens / self.seconds,
            "data_wait_share": self.waited / self.seconds,
            "seconds": state.seconds,
        }
        return row | heldout_values(scores)


def heldout_values(scores: Mapping[str, float | None]) -> dict[str, float]:
    """Held-out scores as a row names them."""
    return {f"heldout_{name}": value for name, value in scores.items() if value is not None}


def _mean(total: float, steps: int) -> float:
    return total / steps if steps else math.nan


def digits_of(ranks: Ranks, micro_batches: Sequence[MicroBatch]) -> str:
    """The hash of the global batch, added up over ranks in two halves that no sum makes too large for 64 bits."""
    return hash_digits(whole_sum(ranks, sum(map(batch_hash, micro_batches))))


def whole_sum(ranks: Ranks, number: int) -> int:
    """The sum over ranks of a number of at most 64 bits, exact."""
    # Several of them would overflow int64, which is what the sum is made in, so their halves are added up.
    high, low = ranks.all_reduce_async(divmod(number, 2**32)).result()
    return high * 2**32 + low


def time_left(forecast: Forecast, phase: Phase, state: State, window: Window) -> dict[str, float]:
    """Seconds to the end of the run, as a row has them: reckoned with the pace of the window, and the least and the
    most by how the pace varied."""
    sizes, step = phase.loader.settings.batches, state.data_step
    first = step - len(window.times)
    # As if each had had the full batch: while it grows, steps of one window have different ones.
    taken = [seconds * sizes.full / sizes.at(first + i) for i, seconds in enumerate(window.times)]
    forecast.stepped(phase, taken)
    pace = statistics.fmean(taken)
    low, high = forecast.interval(phase, step, state.phase_seconds)
    left = forecast.remaining(phase, step, pace, state.phase_seconds)
    # The window may be faster or slower than any part of the steps before it.
    return {
        "remaining_seconds": left,
        "remaining_low_seconds": min(low, left),
        "remaining_high_seconds": max(high, left),
    }
