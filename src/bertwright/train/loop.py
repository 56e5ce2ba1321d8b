"""The training loop: phase after phase, step after step: fetch, step, and what is due after it."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from bertwright.core import rng
from bertwright.examples.loader import StepCounts
from bertwright.model.batch import PackedBatch, to_device
from bertwright.train.after_step import after_step, end_now, row_is_due
from bertwright.train.guard import go_back, loss_limit, norm_limit, noted
from bertwright.train.micro_batch import Cutting
from bertwright.train.phases import Phase
from bertwright.train.precision.loss_scale import scale_after
from bertwright.train.prefetch import prefetch
from bertwright.train.ranks import Ranks
from bertwright.train.session import Session
from bertwright.train.state import State
from bertwright.train.step import StepResult, StepSettings, train_step
from bertwright.train.window import Window


def train(session: Session, phases: Sequence[Phase], state: State) -> State:
    """Train from `state` to the end of the last phase."""
    for phase in phases[state.phase :]:
        if state.phase < phase.index:
            # NVIDIA's hand-over: the moments stay, the bias correction starts anew with the phase.
            if phase.restart_bias_correction:
                session.trained.engine.restart_steps()
            state = replace(
                state, phase=phase.index, data_step=0, optimizer_step=0, phase_seconds=0.0, phase_end=False, heldout={}
            )
        if not phase.over(state.data_step, state.phase_seconds) and not phase.reached(state.heldout):
            state = train_phase(session, phase, state)
        elif not state.phase_end:
            state = end_now(session, phase, state)
        session.write_graph(phase)
    return state


def train_phase(session: Session, phase: Phase, state: State) -> State:
    """Train from `state` to the end of the phase; raises `Interrupted` after saving when asked to stop."""
    trained, loader = session.trained, phase.loader
    ranks, cutting = trained.ranks, Cutting(phase, trained, session.log)
    # With a step's batches come the counts of the step after it, so that their sum over ranks travels a step ahead.
    ahead = prefetch(cutting.fetch, state.data_step, phase.steps)
    # No step before the first one brings its counts.
    pending = ranks.all_reduce_async(loader.counts(state.data_step, ranks.rank, ranks.world))
    window, name = Window(began=time.perf_counter()), f"phase {phase.index}"
    session.progress(name, state.data_step, phase.steps, "steps")
    for (drawn, next_counts), waited in ahead:
        counts = StepCounts(*pending.result())
        pending = ranks.all_reduce_async(next_counts)
        # By updates that were applied, not by batches drawn: a dropped step must not shorten the schedule.
        rate = phase.rate(state.optimizer_step, state.phase_seconds)
        with session.profiled(waited) as taken:
            train_on = partial(_step, replace(session, trained=taken), cutting, state, counts, rate)
            result = cutting.trained(state.data_step, drawn, train_on)
        window.rate, window.flops = rate, window.flops + session.meter.flops(drawn.micro_batches)
        seconds = _agreed(ranks, phase, window.add(result, counts.tokens, waited))
        window.part_ends = phase.part(state.phase_seconds) != phase.part(state.phase_seconds + seconds)
        state = _advanced(session, cutting, state, result, counts, seconds)
        session.progress(name, state.data_step, phase.steps, "steps")
        state, window = after_step(session, phase, state, window, drawn.micro_batches)
        if state.phase_end:  # before its last step, where its time is spent
            break
    ahead.close()
    pending.result()
    return state


def _step(
    session: Session, cutting: Cutting, state: State, counts: StepCounts, rate: float, batches: Sequence[PackedBatch]
) -> StepResult:
    trained, phase = session.trained, cutting.phase
    return train_step(
        trained,
        # Each goes to the device when its turn comes, so that memory does not grow with accumulation.
        (to_device(batch, trained.precision.device) for batch in batches),
        {term: getattr(counts, what) for term, what in trained.objective.counted.items()},
        StepSettings(
            rate,
            # A key of the step and no generator's state: a resumed run draws the same dropout with nothing saved.
            rng.key(phase.seed, "dropout", phase.index, state.data_step),
            state.scale.factor if state.scale else 1.0,
            norm_limit(session.guard, state),
            loss_limit(session.guard, state),
            accuracy=row_is_due(phase, state.data_step + 1),
            may_run_out=phase.finds_micro_batch,
        ),
    )


def _advanced(
    session: Session, cutting: Cutting, state: State, result: StepResult, counts: StepCounts, seconds: float
) -> State:
    """The state after a step that took so long; the average, the loss scale and the guard know of it."""
    trained, phase = session.trained, cutting.phase
    scale = scale_after(trained.precision.config, state.scale, math.isfinite(result.grad_norm))
    sequences = phase.loader.settings.batches.at(state.data_step)
    state = state.advanced(result.applied, sequences, counts.tokens, seconds, scale)
    if session.averaging:
        session.averaging.after(trained.model.state_dict(), state.total_steps, result.applied)
    state = noted(session.guard, cutting.noted(state), result)
    return go_back(session, phase, state) if state.skipped_in_a_row >= session.guard.patience else state


def _agreed(ranks: Ranks, phase: Phase, seconds: float) -> float:
    """The seconds of a step; where the rate follows them those of the first rank, as all need the same rate."""
    if not phase.budget or ranks.world == 1:
        return seconds
    (microseconds,) = ranks.all_reduce_async([int(seconds * 1e6) if ranks.first else 0]).result()
    return microseconds / 1e6
