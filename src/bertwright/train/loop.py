"""The training loop of one phase: fetch, step, observe, save, stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import torch
from torch.optim import Optimizer

from bertwright.core import rng
from bertwright.core.errors import DataError, Interrupted
from bertwright.examples.batch import MicroBatch, batch_hash, hash_digits
from bertwright.model.batch import PackedBatch, packed
from bertwright.model.bert import BertForPreTraining
from bertwright.model.scores import score
from bertwright.optim.schedule import learning_rate
from bertwright.train.checkpoint import State
from bertwright.train.forecast import Forecast
from bertwright.train.phases import Phase
from bertwright.train.prefetch import prefetch
from bertwright.train.ranks import Ranks
from bertwright.train.step import StepResult, train_step

MOST_SKIPPED_IN_A_ROW = 20


@dataclass(frozen=True)
class Session:
    """What stays the same over all phases, and whom the loop tells."""

    model: BertForPreTraining
    optimizer: Optimizer
    device: torch.device
    ranks: Ranks
    max_grad_norm: float
    record: Callable[[dict[str, Any]], None]
    """Takes a row of metrics."""
    save: Callable[[State], None]
    """Writes a checkpoint."""
    stop_requested: Callable[[], bool]
    """Whether a signal asked to stop."""
    forecast: Forecast
    """What is left of the run."""
    progress: Callable[[str, float, float, str], None]
    """Takes the name of what goes on, how much of how much is done, and its unit."""


@dataclass
class Window:
    """Sums since the last line of metrics; losses and norms of applied updates only."""

    steps: int = 0
    skipped: int = 0
    mlm_loss: float = 0.0
    nsp_loss: float = 0.0
    grad_norm: float = 0.0
    tokens: int = 0
    waited: float = 0.0
    seconds: float = 0.0
    began: float = field(default_factory=time.perf_counter)

    def add(self, result: StepResult, tokens: int, waited: float) -> float:
        """Take one step in; returns the seconds it took, from the end of the step before."""
        now = time.perf_counter()
        took, self.began = now - self.began, now
        self.steps += 1
        self.skipped += not result.applied
        if result.applied:
            self.mlm_loss += result.mlm_loss
            self.nsp_loss += result.nsp_loss
            self.grad_norm += result.grad_norm
        self.tokens += tokens
        self.waited += waited
        self.seconds += took
        return took


def train_phase(session: Session, phase: Phase, state: State) -> State:
    """Train from `state` to the end of the phase; raises `Interrupted` after saving when asked to stop."""
    ranks, draws = session.ranks, phase.draws
    rank, world = ranks.rank, ranks.world
    # With a step's batches come the counts of the step after it, so that their sum over ranks travels a step ahead.
    ahead = prefetch(
        lambda k: (draws.step(k, rank, world), draws.counts(k + 1, rank, world)), state.data_step, phase.steps
    )
    pending = ranks.begin_sum(draws.counts(state.data_step, rank, world))
    window, name = Window(), f"phase {phase.index}"
    session.progress(name, state.data_step, phase.steps, "steps")
    for (micro_batches, next_counts), waited in ahead:
        predictions, pairs, tokens = pending.result()
        pending = ranks.begin_sum(next_counts)
        rate = learning_rate(phase.schedule, state.optimizer_step, phase.schedule_steps, phase.warmup_steps, phase.peak)
        result = train_step(
            session.model,
            session.optimizer,
            _on_device(micro_batches, session.device),
            (predictions, pairs),
            learning_rate=rate,
            max_grad_norm=session.max_grad_norm,
            dropout_key=rng.key(phase.seed, "dropout", phase.index, state.data_step),
            ranks=ranks,
        )
        seconds = window.add(result, tokens, waited)
        state = state.advanced(result.applied, draws.settings.global_batch, tokens, seconds)
        _refuse_divergence(state, phase)
        session.progress(name, state.data_step, phase.steps, "steps")
        state, window = _observe(session, phase, state, window, rate, micro_batches)
    pending.result()
    return state


def _observe(
    session: Session, phase: Phase, state: State, window: Window, rate: float, micro_batches: list[MicroBatch]
) -> tuple[State, Window]:
    """Score, report and save when due; the row is written before the checkpoint, so that no checkpoint lacks it."""
    step, began = state.data_step, time.perf_counter()
    state = replace(state, phase_end=step == phase.steps)
    stop = session.ranks.any(session.stop_requested())
    scored = state.phase_end or step % phase.evaluate_every == 0
    scores: Mapping[str, float | None] = {}
    if session.ranks.first and scored:
        state, scores = _score(session, phase, state)
    save = state.phase_end or stop or step % phase.checkpoint_every == 0
    if save or scored or step % phase.log_every == 0:  # on all ranks alike, for the hash is summed over them
        batch = _digits(session.ranks, micro_batches)
        left = session.forecast.remaining(phase, step, window.seconds / window.steps)
        row = _row(phase, state, window, rate, scores) | {"remaining_seconds": left, "batch": batch, "saved": save}
        session.record({name: _number(value) for name, value in row.items()})
        window = Window()
    if save:
        saving = time.perf_counter()
        session.save(state)
        session.forecast.saving = time.perf_counter() - saving
    window.began = time.perf_counter()
    state = replace(state, other_seconds=state.other_seconds + window.began - began)
    if stop and not state.phase_end:
        session.ranks.barrier()  # a rank that leaves early would have the others killed while the first one writes
        raise Interrupted(
            f"stopped by a signal after step {step:,} of {phase.steps:,}; everything is saved. "
            "Run the same command again to continue."
        )
    return state, window


def end_now(session: Session, phase: Phase, state: State) -> State:
    """The state at the end of a phase whose end was moved to the very step that `state` stands at."""
    state = replace(state, phase_end=True)
    if session.ranks.first:
        state, _ = _score(session, phase, state)
    session.save(state)
    return state


def _score(session: Session, phase: Phase, state: State) -> tuple[State, Mapping[str, float | None]]:
    """The state with the held-out scores that are numbers, and all of them."""
    began = time.perf_counter()
    scores = score(session.model, _scored(session, phase)).as_dict()
    session.forecast.scored(phase, time.perf_counter() - began)
    finite = {name: value for name, value in scores.items() if value is not None and math.isfinite(value)}
    return replace(state, heldout=finite if "mlm_loss" in finite else {}), scores


def _row(phase: Phase, state: State, window: Window, rate: float, scores: Mapping[str, float | None]) -> dict[str, Any]:
    applied = window.steps - window.skipped
    row = {
        "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "phase": phase.index,
        "step": state.data_step,
        "steps": phase.steps,
        "total_steps": state.total_steps,
        "optimizer_step": state.optimizer_step,
        "skipped": window.skipped,
        "mlm_loss": _mean(window.mlm_loss, applied),
        "nsp_loss": _mean(window.nsp_loss, applied),
        "grad_norm": _mean(window.grad_norm, applied),
        "learning_rate": rate,
        "tokens_seen": state.tokens_seen,
        "tokens_per_second": window.tokens / window.seconds,
        "data_wait_share": window.waited / window.seconds,
        "seconds": state.seconds,
    }
    return row | {f"heldout_{name}": value for name, value in scores.items() if value is not None}


def _mean(total: float, steps: int) -> float:
    """NaN where no update was applied."""
    return total / steps if steps else math.nan


def _number(value: Any) -> Any:
    """JSON has no NaN and no infinity: they become null, and are shown as NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _digits(ranks: Ranks, micro_batches: list[MicroBatch]) -> str:
    """The hash of the global batch, added up over ranks in two halves that no sum makes too large for 64 bits."""
    high, low = ranks.begin_sum(divmod(sum(map(batch_hash, micro_batches)), 2**32)).result()
    return hash_digits(high * 2**32 + low)


def _scored(session: Session, phase: Phase) -> Iterator[PackedBatch]:
    """The held-out batches, telling how far scoring is."""
    batches: Sequence[PackedBatch] = _on_device(phase.heldout(), session.device)
    for number, batch in enumerate(batches):
        session.progress("scoring", number, len(batches), "batches")
        yield batch
    session.progress("scoring", len(batches), len(batches), "batches")


def _on_device(batches: list[MicroBatch], device: torch.device) -> list[PackedBatch]:
    return [packed(batch, device) for batch in batches if batch.counts.sequences]


def _refuse_divergence(state: State, phase: Phase) -> None:
    if state.skipped_in_a_row >= MOST_SKIPPED_IN_A_ROW:
        raise DataError(
            f"the gradient was not finite in {state.skipped_in_a_row} steps in a row (phase {phase.index}, step "
            f"{state.data_step:,}): training has diverged. Lower train.phases.{phase.index}.learning_rate (now "
            f"{phase.peak:g}) or raise its warmup, and start in another folder."
        )
