"""One start of training: what stays the same over all phases, what is observed, and where it is written down."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from bertwright.core.config import Identity
from bertwright.core.log import Log
from bertwright.examples.batch import MicroBatch, batch_hash, hash_digits
from bertwright.model.batch import PackedBatch
from bertwright.objectives.objective import judged_by
from bertwright.objectives.scores import score_sums, scores_of
from bertwright.train import checkpoint as checkpoints
from bertwright.train.averaging.averaging import Averaging
from bertwright.train.forecast import Forecast
from bertwright.train.guard_config import GuardConfig
from bertwright.train.meter import Meter
from bertwright.train.metrics import Metrics
from bertwright.train.phases import Phase
from bertwright.train.ranks import Ranks
from bertwright.train.state import State
from bertwright.train.step import StepResult, Trained

if TYPE_CHECKING:  # loaded where they are asked for
    from bertwright.train.observers.watch import Watch
    from bertwright.train.profiler import StepProfiler


@dataclass(frozen=True)
class Session:
    """Made once a start; the loop writes rows and checkpoints through it."""

    trained: Trained
    folder: Path
    """Of the checkpoints."""
    identity: Identity
    """Of the checkpoints."""
    keep: int
    """Newest checkpoints kept."""
    metrics: Metrics | None
    """Where rows go; None on all ranks but the first."""
    log: Log
    stop_requested: Callable[[], bool]
    """Whether a signal asked to stop."""
    guard: GuardConfig
    """What is done about bad gradients."""
    forecast: Forecast
    """What is left of the run."""
    saved: Callable[[Path], None]
    """Takes the path of each new checkpoint, on the first rank."""
    meter: Meter
    """What is said of computing and memory."""
    profiler: StepProfiler | None = None
    """Of some steps of this start, where that is asked for."""
    watch: Watch | None = None
    """Who is shown the rows, on the first rank."""
    averaging: Averaging | None = None
    """The average of the weights, where one is kept."""

    def profiled(self, waited: float) -> AbstractContextManager[Trained]:
        """What to take a step with, under the profiler where there is one; `waited` are the seconds for its batch."""
        return self.profiler.step(self.trained, waited) if self.profiler else nullcontext(self.trained)

    def progress(self, what: str, done: float, total: float, unit: str) -> None:
        """Tell how much of how much is done."""
        self.log.progress(what, done, total, unit)

    def record(self, row: dict[str, Any]) -> None:
        """Write a row of metrics, on the first rank."""
        row = {name: json_number(value) for name, value in row.items()}
        if self.metrics is not None:
            self.metrics.write(row)
        if self.watch is not None:
            self.watch.record(row)
        self.log.record(row)

    def save(self, state: State) -> None:
        """Write a checkpoint, all ranks together; the rows before it survive a power cut."""
        # All ranks, before those that do not write leave: gathering may need every one of them.
        weights, moments = self.trained.engine.gather()
        if self.metrics is None:
            return
        # In this order, so that after a power cut no checkpoint exists whose rows are gone.
        self.metrics.sync()
        # The watchdog ends a process whose peer is lost, but a checkpoint that is half written helps nobody.
        with self.trained.ranks.saving():
            average = self.averaging.state() if self.averaging else None
            saved = checkpoints.save(self.folder, self.identity, state, weights, moments, average)
        checkpoints.prune(self.folder, self.keep, saved, judged_by(self.trained.objective))
        self.saved(saved)


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
        return row | {f"heldout_{name}": value for name, value in scores.items() if value is not None}


def json_number(value: Any) -> Any:
    """JSON has no NaN and no infinity: they become null, and are shown as NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _mean(total: float, steps: int) -> float:
    return total / steps if steps else math.nan


def score_heldout(session: Session, phase: Phase, state: State) -> tuple[State, Mapping[str, float | None]]:
    """The state with the held-out scores that are numbers, and all of them; all ranks together.

    Each rank scores its share of the batches. Their sums are added in the order of the batches, so the scores are the
    same to the last bit for any number of ranks.
    """
    began, trained = time.perf_counter(), session.trained
    rank, world = trained.ranks.rank, trained.ranks.world
    batches = phase.heldout()
    # A slot for each batch, not a total for each rank: floating-point sums depend on the order of addition.
    sums = torch.zeros(len(batches), len(trained.objective.counted), 3, dtype=torch.float64)
    with trained.precision.forward():
        own_sums = score_sums(trained.objective, trained.model, _batches(session, phase, rank, world))
    if own_sums:
        sums[rank::world] = torch.stack(own_sums)
    trained.ranks.all_reduce([sums])
    scores = scores_of(trained.objective, sums)
    session.forecast.scored(phase, time.perf_counter() - began)
    # JSON has no NaN, and a checkpoint must not be the best one because its score is not a number.
    finite = {name: value for name, value in scores.items() if value is not None and math.isfinite(value)}
    return replace(state, heldout=finite if judged_by(trained.objective) in finite else {}), scores


def score_average(session: Session, phase: Phase, state: State) -> tuple[Mapping[str, torch.Tensor], State]:
    """The averaged weights, of the network's shapes, which it has from then on, and the state with their scores; none,
    and `state`, where no average is kept, or an end was moved to before it begins."""
    average = session.averaging.average() if session.averaging else {}
    if not average:
        return average, state
    # Copied into the network: training is over, and its own weights are in the last checkpoint.
    session.trained.model.load_state_dict(average)
    averaged, scores = score_heldout(session, phase, state)
    judged = judged_by(session.trained.objective)
    session.log.say(f"train: held out, the average of the weights scores {judged} {scores[judged]}")
    return average, averaged


def _batches(session: Session, phase: Phase, rank: int, world: int) -> Iterator[PackedBatch]:
    """The rank's held-out batches, telling how far scoring is."""
    batches = phase.heldout()
    for number, batch in enumerate(batches):
        session.progress("scoring", number, len(batches), "batches")
        if number % world == rank:
            yield session.trained.read(batch)
    session.progress("scoring", len(batches), len(batches), "batches")


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
    # Of a step of the full batch, as the steps to come have.
    growth = sizes.full / sizes.at(step - 1)
    forecast.stepped(phase, [seconds * growth for seconds in window.times])
    pace = window.seconds / window.steps * growth
    low, high = forecast.interval(phase, step, state.phase_seconds)
    left = forecast.remaining(phase, step, pace, state.phase_seconds)
    # The window may be faster or slower than any part of the steps before it.
    return {
        "remaining_seconds": left,
        "remaining_low_seconds": min(low, left),
        "remaining_high_seconds": max(high, left),
    }
