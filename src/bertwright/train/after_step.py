"""What happens after a step: held-out scores, a metrics row, a checkpoint, and stopping when a signal requests it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bertwright.core.errors import Interrupted
from bertwright.examples.batch import MicroBatch
from bertwright.train.guard import refuse_no_update
from bertwright.train.monitor.step_stats import StepStats, digits_of, full_times, heldout_values, time_left, whole_sum
from bertwright.train.scoring import ScoringStopped, score_heldout
from bertwright.train.session import Session
from bertwright.train.settings.phases import ACCURACY, Phase
from bertwright.train.state import State


def after_step(
    session: Session, phase: Phase, state: State, stats: StepStats, micro_batches: list[MicroBatch]
) -> tuple[State, StepStats]:
    """Score, log and save when due. The row is written before the checkpoint, so no checkpoint lacks its row."""
    ranks, step, began = session.trainee.ranks, state.data_step, time.perf_counter()
    session.checkpoints.check_written()
    state = replace(state, phase_end=phase.over(step, state.phase_seconds))
    # A signal reaches ranks at different steps, or only one rank; all must stop after the same step.
    requests = session.requests
    notice, stop = ranks.any_of(requests.to_save(), requests.to_stop())
    scored = state.phase_end or stats.part_ends or phase.due(phase.evaluate_every, step)
    scores: Mapping[str, float | None] = {}
    if scored:
        try:
            state, scores = score_heldout(session, phase, state, may_stop=True)
            state = _end_if_reached(session, phase, state)
        except ScoringStopped:
            state, stop = replace(state, unscored=True), True
    refuse_no_update(session, phase, state)
    if not state.unscored:
        _log_schedule_cut(session, phase, state)
    due = state.phase_end or stats.part_ends or phase.due(phase.checkpoint_every, step)
    save = due or stop or notice
    session.compare_ranks(state.total_steps, save)
    if save or row_is_due(phase, step):  # on all ranks, because the hash is an all-reduce
        flops, batch = whole_sum(ranks, stats.flops), digits_of(ranks, micro_batches)
        state = replace(state, flops=state.flops + flops)
        row = stats.row(phase, state, scores) | session.monitor.throughput.row(flops, stats.seconds)
        _record(session, phase, state, stats, row | {"batch": batch, "saved": save})
        stats = StepStats()
    if save:
        saving = time.perf_counter()
        if due:
            session.monitor.guesses.record(session.trainee, state)
        session.checkpoints.save(replace(state, due=due), wait=stop or notice or state.phase_end)
        session.monitor.forecast.saving = time.perf_counter() - saving
    # Scoring and saving do not count towards the next step's time, or throughput would drop after each of them.
    stats.began = time.perf_counter()
    state = replace(state, other_seconds=state.other_seconds + stats.began - began)
    if stop and (state.unscored or not state.phase_end):
        raise _interruption(session, phase, step)
    return state, stats


def _interruption(session: Session, phase: Phase, step: int) -> Interrupted:
    """Return the error that ends a training after a request to stop; all ranks must call this together."""
    ranks = session.trainee.ranks
    ranks.barrier()  # if a rank exits early, the launcher kills the others while rank 0 is still writing
    by = "a signal" if ranks.any(session.requests.signalled()) else "a notice that the cloud reclaims a machine"
    return Interrupted(
        f"stopped by {by} after step {step:,} of {phase.steps:,}; everything is saved. Run the same command again to "
        "continue."
    )


def score_late(session: Session, phase: Phase, state: State) -> State:
    """Return the state with the scores that were not taken because of a request to stop, adding them to the row
    and the checkpoint of that step."""
    began = time.perf_counter()
    try:
        state, scores = score_heldout(session, phase, state, may_stop=True)
    except ScoringStopped:  # again; nothing is lost, because this step is saved
        raise _interruption(session, phase, state.data_step) from None
    state = _end_if_reached(session, phase, state)
    refuse_no_update(session, phase, state)
    _log_schedule_cut(session, phase, state)
    state = replace(state, unscored=False, due=state.due or state.phase_end)
    session.monitor.complete(state.total_steps, heldout_values(scores))
    session.checkpoints.save(state, wait=True)
    return replace(state, other_seconds=state.other_seconds + time.perf_counter() - began)


def _record(session: Session, phase: Phase, state: State, stats: StepStats, row: dict[str, Any]) -> None:
    """Write the metrics row with the remaining time, and log when the loss or the time is outside its expected band."""
    seconds = full_times(phase, state, stats)
    session.monitor.check_expected(row, stats.steps, phase, seconds)
    session.monitor.record(row | time_left(session.monitor.forecast, phase, state, seconds))


def _end_if_reached(session: Session, phase: Phase, state: State) -> State:
    """Return the state, marked as the phase's end if the target is reached; log whether the target was reached."""
    reached = phase.reached(state.heldout)
    if phase.target_accuracy is not None and (reached or state.phase_end):
        found = f"{100 * state.heldout.get(ACCURACY, 0.0):.2f} %"
        what = f"reached its target of {100 * phase.target_accuracy:g} %" if reached else "did not reach its target"
        session.monitor.log.say(
            f"train: phase {phase.index} ends after step {state.data_step:,} of {phase.steps:,}: held-out accuracy of "
            f"masked tokens {what} ({found})"
        )
    return replace(state, phase_end=state.phase_end or reached)


def _log_schedule_cut(session: Session, phase: Phase, state: State) -> None:
    """At the end of a phase, log where its learning rate stopped if dropped updates cut its schedule short."""
    missing = state.data_step - state.optimizer_step
    if not state.phase_end or not missing or phase.budget:
        return
    stopped, planned = (phase.rate(max(done - 1, 0), 0.0) for done in (state.optimizer_step, state.data_step))
    if stopped != planned:
        session.monitor.log.say(
            f"train: phase {phase.index} ends after {state.data_step:,} steps with {state.optimizer_step:,} updates, "
            f"because {missing:,} were dropped or undone. The learning rate follows the updates, so it stops at "
            f"{stopped:.2g} instead of {planned:.2g}"
        )


def row_is_due(phase: Phase, step: int) -> bool:
    """Whether a row is always written after `step`: it is logged, scored or saved, or the last of its phase."""
    due = any(phase.due(every, step) for every in (phase.log_every, phase.evaluate_every, phase.checkpoint_every))
    return due or step == phase.steps


def end_now(session: Session, phase: Phase, state: State) -> State:
    """Return the state at the end of a phase whose end was moved to exactly the step that `state` is at.

    The row of that step was written when it was trained; any missing held-out scores are added to it.
    """
    began, scored_before = time.perf_counter(), bool(state.heldout)
    state = replace(state, phase_end=True)
    refuse_no_update(session, phase, state)
    _log_schedule_cut(session, phase, state)
    state, scores = score_heldout(session, phase, state)
    if not scored_before:
        session.monitor.complete(state.total_steps, {"steps": phase.steps, "saved": True, **heldout_values(scores)})
    session.monitor.guesses.record(session.trainee, state)
    session.checkpoints.save(replace(state, due=True), wait=True)
    return replace(state, other_seconds=state.other_seconds + time.perf_counter() - began)
