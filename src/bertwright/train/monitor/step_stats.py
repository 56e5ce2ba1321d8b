"""Collects measurements of the steps since the last metrics row, for the next row."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bertwright.examples.batch import MicroBatch, batch_hash, hash_digits
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.settings.forecast import Forecast
from bertwright.train.settings.phases import Phase
from bertwright.train.state import State
from bertwright.train.step import StepResult


@dataclass
class StepStats:
    """Values of the steps since the last row; losses and norms of applied updates only."""

    steps: int = 0
    skipped: int = 0
    losses: dict[str, float] = field(default_factory=dict)
    """The sum of each term's losses in the applied updates that have predictions of it."""
    predicted: dict[str, int] = field(default_factory=dict)
    """The number of those updates for each term."""
    accuracies: Mapping[str, float | None] = field(default_factory=dict)
    """Accuracies of the last step only, if they were counted."""
    grad_norm: float = 0.0
    rate: float = 0.0
    """Learning rate of the last step."""
    tokens: int = 0
    flops: int = 0
    """Floating-point operations of this rank."""
    waited: float = 0.0
    times: list[float] = field(default_factory=list)
    """Seconds of each step."""
    began: float = field(default_factory=time.perf_counter)
    part_ends: bool = False
    """Whether a part of the phase's time budget ended with the last step."""

    def add(self, result: StepResult, tokens: int, waited: float) -> float:
        """Add one step; return the seconds it took, measured from the end of the previous step."""
        now = time.perf_counter()
        took, self.began = now - self.began, now
        self.steps += 1
        self.skipped += not result.applied
        for name, loss in result.losses.items():
            # The loss of a dropped step may be NaN, and would make the mean of the entire window NaN.
            self.losses[name] = self.losses.get(name, 0.0) + ((loss or 0.0) if result.applied else 0.0)
            self.predicted[name] = self.predicted.get(name, 0) + (result.applied and loss is not None)
        self.accuracies = result.accuracies
        self.grad_norm += result.grad_norm if result.applied else 0.0
        self.tokens += tokens
        self.waited += waited
        self.times.append(took)
        return took

    @property
    def seconds(self) -> float:
        """Seconds of all steps in the window."""
        return sum(self.times)

    def row(self, phase: Phase, state: State, scores: Mapping[str, float | None]) -> dict[str, Any]:
        """Return the row for these steps, the last of which led to `state`; NaN if no update was applied, None for the
        loss of a term without any prediction."""
        applied = self.steps - self.skipped
        row = {
            "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "phase": phase.index,
            "step": state.data_step,
            "steps": phase.steps,
            "total_steps": state.total_steps,
            "optimizer_step": state.optimizer_step,
            "skipped": self.skipped,
            **{f"{name}_loss": self._loss(name) for name in self.losses},
            **{f"{name}_accuracy": share for name, share in self.accuracies.items()},
            "grad_norm": self.grad_norm / applied if applied else math.nan,
            "learning_rate": self.rate,
            **({"loss_scale": state.scale.factor} if state.scale else {}),
            "tokens_seen": state.tokens_seen,
            "tokens_per_second": self.tokens / self.seconds,
            "data_wait_share": self.waited / self.seconds,
            "seconds": state.seconds,
        }
        return row | heldout_values(scores)

    def _loss(self, name: str) -> float | None:
        if self.skipped == self.steps:
            return math.nan
        return self.losses[name] / self.predicted[name] if self.predicted[name] else None


def heldout_values(scores: Mapping[str, float | None]) -> dict[str, float]:
    """Return held-out scores under the names that a row uses."""
    return {f"heldout_{name}": value for name, value in scores.items() if value is not None}


def digits_of(ranks: Ranks, micro_batches: Sequence[MicroBatch]) -> str:
    """Return the hash of the global batch, summed over ranks."""
    return hash_digits(whole_sum(ranks, sum(map(batch_hash, micro_batches))))


def whole_sum(ranks: Ranks, number: int) -> int:
    """Return the exact sum over ranks of a number of at most 64 bits."""
    # The all-reduce uses int64, which several such numbers would overflow, so their halves are summed.
    high, low = ranks.all_reduce_async(divmod(number, 2**32)).result()
    return high * 2**32 + low


def full_times(phase: Phase, state: State, stats: StepStats) -> list[float]:
    """Return the seconds of each step in the window, scaled to a full batch: while the batch grows, their sizes
    differ."""
    sizes, first = phase.loader.settings.batches, state.data_step - len(stats.times)
    return [seconds * sizes.full / sizes.at(first + i) for i, seconds in enumerate(stats.times)]


def time_left(forecast: Forecast, phase: Phase, state: State, taken: Sequence[float]) -> dict[str, float]:
    """Return the seconds to the end of the run, as a row has them: estimated with the pace of the last steps, which
    took `taken` seconds, with a lower and an upper estimate from how the pace varied."""
    step = state.data_step
    forecast.record_steps(phase, taken)
    pace = statistics.fmean(taken)
    low, high = forecast.interval(phase, step, state.phase_seconds)
    remaining = forecast.remaining(phase, step, pace, state.phase_seconds)
    # The last steps may be faster or slower than any part of the steps before it.
    return {
        "remaining_seconds": remaining,
        "remaining_low_seconds": min(low, remaining),
        "remaining_high_seconds": max(high, remaining),
    }
