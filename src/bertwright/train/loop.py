"""The training loop: phase after phase, step after step: fetch, step, observe, save, stop."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bertwright.core import rng
from bertwright.core.errors import Interrupted
from bertwright.examples.batch import MicroBatch
from bertwright.examples.loader import StepCounts
from bertwright.optim.state import reset_steps
from bertwright.train.guard import go_back, norm_limit, noted
from bertwright.train.phases import Phase
from bertwright.train.precision.loss_scale import scale_after
from bertwright.train.prefetch import prefetch
from bertwright.train.ranks import Ranks
from bertwright.train.session import Session, Window, digits_of, score_heldout, time_left, whole_sum
from bertwright.train.state import State
from bertwright.train.step import StepResult, StepSettings, train_step


def train(session: Session, phases: Sequence[Phase], state: State) -> State:
    """Train from `state` to the end of the last phase."""
    for phase in phases[state.phase :]:
        if state.phase < phase.index:
            # NVIDIA's hand-over: the moments stay, the bias correction starts anew with the phase.
            if phase.restart_bias_correction:
                reset_steps(session.trained.optimizer)
            state = replace(state, phase=phase.index, data_step=0, optimizer_step=0, phase_seconds=0.0, phase_end=False)
        if not phase.over(state.data_step, state.phase_seconds):
            state = train_phase(session, phase, state)
        elif not state.phase_end:
            state = end_now(session, phase, state)
    return state


def train_phase(session: Session, phase: Phase, state: State) -> State:
    """Train from `state` to the end of the phase; raises `Interrupted` after saving when asked to stop."""
    trained, loader = session.trained, phase.loader
    ranks = trained.ranks
    rank, world = ranks.rank, ranks.world
    # With a step's batches come the counts of the step after it, so that their sum over ranks travels a step ahead.
    ahead = prefetch(
        lambda k: (loader.step(k, rank, world), loader.counts(k + 1, rank, world)), state.data_step, phase.steps
    )
    # No step before the first one brings its counts.
    pending = ranks.all_reduce_async(loader.counts(state.data_step, rank, world))
    window, name = Window(began=time.perf_counter()), f"phase {phase.index}"
    session.progress(name, state.data_step, phase.steps, "steps")
    for (micro_batches, next_counts), waited in ahead:
        counts = StepCounts(*pending.result())
        pending = ranks.all_reduce_async(next_counts)
        # By updates that were applied, not by batches drawn: a dropped step must not shorten the schedule.
        rate = phase.rate(state.optimizer_step, state.phase_seconds)
        with session.profiled(waited) as taken:
            result = _step(replace(session, trained=taken), phase, state, micro_batches, counts, rate)
        window.rate, window.flops = rate, window.flops + session.meter.flops(micro_batches)
        seconds = _agreed(ranks, phase, window.add(result, counts.tokens, waited))
        window.part_ends = phase.part(state.phase_seconds) != phase.part(state.phase_seconds + seconds)
        scale = scale_after(trained.precision.config, state.scale, math.isfinite(result.grad_norm))
        state = state.advanced(
            result.applied, loader.settings.batches.at(state.data_step), counts.tokens, seconds, scale
        )
        if session.averaging:
            session.averaging.after(trained.model.state_dict(), state.total_steps, result.applied)
        state = noted(session.guard, state, result.grad_norm, result.applied)
        if state.skipped_in_a_row >= session.guard.patience:
            state = go_back(session, phase, state)
        session.progress(name, state.data_step, phase.steps, "steps")
        state, window = _observe(session, phase, state, window, micro_batches)
        if state.phase_end:  # before its last step, where its time is spent
            break
    ahead.close()
    pending.result()
    return state


def _step(
    session: Session, phase: Phase, state: State, micro_batches: list[MicroBatch], counts: StepCounts, rate: float
) -> StepResult:
    trained = session.trained
    return train_step(
        trained,
        # A rank that is left without sequences has an empty micro-batch: no forward pass, but it joins every sum.
        [trained.read(batch) for batch in micro_batches if batch.counts.sequences],
        {term: getattr(counts, what) for term, what in trained.objective.counted.items()},
        StepSettings(
            rate,
            # A key of the step and no generator's state: a resumed run draws the same dropout with nothing saved.
            rng.key(phase.seed, "dropout", phase.index, state.data_step),
            state.scale.factor if state.scale else 1.0,
            norm_limit(session.guard, state),
            accuracy=_row_is_due(phase, state.data_step + 1),
        ),
    )


def _observe(
    session: Session, phase: Phase, state: State, window: Window, micro_batches: list[MicroBatch]
) -> tuple[State, Window]:
    """Score, report and save when due; the row is written before the checkpoint, so that no checkpoint lacks it."""
    ranks, step, began = session.trained.ranks, state.data_step, time.perf_counter()
    state = replace(state, phase_end=phase.over(step, state.phase_seconds))
    # A signal reaches ranks at different steps, or only one of them: all have to stop after the same one.
    stop = ranks.any(session.stop_requested())
    scored = state.phase_end or window.part_ends or step % phase.evaluate_every == 0
    scores: Mapping[str, float | None] = {}
    if scored:
        state, scores = score_heldout(session, phase, state)
    due = state.phase_end or window.part_ends or step % phase.checkpoint_every == 0
    save = due or stop
    if save or _row_is_due(phase, step):  # on all ranks alike, for the hash is summed over them
        batch, flops = digits_of(ranks, micro_batches), whole_sum(ranks, window.flops)
        state = replace(state, flops=None if state.flops is None else state.flops + flops)
        row = window.row(phase, state, scores) | session.meter.row(flops, window.seconds)
        session.record(row | time_left(session.forecast, phase, state, window) | {"batch": batch, "saved": save})
        window = Window()
    if save:
        saving = time.perf_counter()
        session.save(replace(state, due=due))
        session.forecast.saving = time.perf_counter() - saving
    # Scoring and saving are no part of the next step's time, or throughput would fall at each of them.
    window.began = time.perf_counter()
    state = replace(state, other_seconds=state.other_seconds + window.began - began)
    if stop and not state.phase_end:
        ranks.barrier()  # a rank that leaves early would have the others killed while the first one writes
        raise Interrupted(
            f"stopped by a signal after step {step:,} of {phase.steps:,}; everything is saved. "
            "Run the same command again to continue."
        )
    return state, window


def _row_is_due(phase: Phase, step: int) -> bool:
    """Whether a row follows `step` whatever happens: it is logged, scored or saved, or the last of its phase."""
    due = any(step % every == 0 for every in (phase.log_every, phase.evaluate_every, phase.checkpoint_every))
    return due or step == phase.steps


def end_now(session: Session, phase: Phase, state: State) -> State:
    """The state at the end of a phase whose end was moved to the very step that `state` stands at."""
    state, _ = score_heldout(session, phase, replace(state, phase_end=True))
    session.save(replace(state, due=True))
    return state


def _agreed(ranks: Ranks, phase: Phase, seconds: float) -> float:
    """The seconds of a step; where the rate follows them those of the first rank, as all need the same rate."""
    if not phase.budget or ranks.world == 1:
        return seconds
    (microseconds,) = ranks.all_reduce_async([int(seconds * 1e6) if ranks.first else 0]).result()
    return microseconds / 1e6
