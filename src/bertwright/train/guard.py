"""Handles a gradient or loss that is not finite, or far above earlier ones.

Such an update is dropped: the weights do not change, the schedule does not advance, and the step counts as skipped. If
so many updates in a row are dropped that the weights themselves must be bad, training goes back to the newest
checkpoint before them, leaves out the batches since then, and continues. If that is not allowed, or the limit of
returns is reached, training stops with an error. An overflow that lowers the loss scale of fp16 does not count: only
the scale was bad. All decisions depend only on the norms and losses, which are equal on all ranks, and on the state, so
a resumed run makes the same ones.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from bertwright.core.errors import DivergedError
from bertwright.train.checkpoints.checkpoint import load, load_average, newest_healthy
from bertwright.train.config import GuardConfig
from bertwright.train.precision.loss_scale import scale_from
from bertwright.train.ranks.agreement import assert_equal
from bertwright.train.session import Session
from bertwright.train.settings.phases import Phase
from bertwright.train.state import State
from bertwright.train.step import StepResult


def norm_limit(guard: GuardConfig, state: State) -> float:
    """Return the gradient norm above which the next update is dropped; infinite if there is no limit."""
    return _limit(guard.spike, guard.window, state.norms)


def loss_limit(guard: GuardConfig, state: State) -> float:
    """Return the loss above which the next update is dropped; infinite if there is no limit."""
    return _limit(guard.loss_spike, guard.window, state.losses)


def _limit(factor: float, window: int, before: Sequence[float]) -> float:
    return factor * statistics.median(before) if factor and len(before) >= window else math.inf


def record_update(guard: GuardConfig, state: State, result: StepResult) -> State:
    """Return the state with an applied update's norm and loss added to the history that later updates are judged by,
    unless it had nothing to predict."""
    if not result.applied or result.empty:
        return state
    # Without a limit no history is needed, and a state that is written often stays small.
    norms = (*state.norms, result.grad_norm)[-guard.window :] if guard.spike else state.norms
    losses = (*state.losses, result.loss)[-guard.window :] if guard.loss_spike else state.losses
    return replace(state, norms=norms, losses=losses)


def roll_back(session: Session, phase: Phase, state: State) -> State:
    """Return the state to continue with after too many dropped updates: an earlier checkpoint's, but at the current
    batch.

    Loads the checkpoint's weights and moments. Raises `DivergedError` if training may not go back in this phase (any
    more), or if there is no such checkpoint.
    """
    guard, returns = session.guard, sum(entry["phase"] == phase.index for entry in state.left_out)
    ranks = session.trainee.ranks
    session.checkpoints.wait_written()
    ranks.barrier()  # rank 0 may still be writing the checkpoint that the others look for
    checkpoint = newest_healthy(session.checkpoints.folder, session.monitor.log) if returns < guard.returns else None
    # Also if this rank found none: a rank that stops while others go back would leave them waiting.
    assert_equal(ranks, checkpoint.path.name if checkpoint else "none", "the checkpoint to go back to")
    if checkpoint is None:
        raise _divergence(session, phase, state, returns)
    before, weights, moments = load(checkpoint)
    trainee = session.trainee
    trainee.engine.load(moments, weights)
    if session.trainee.averaging:
        session.trainee.averaging.load(load_average(checkpoint), trainee.model.state_dict())
    left_out, applied, same_phase = _since(before, state), before.optimizer_step, before.phase == phase.index
    if not same_phase:  # the hand-overs since then are repeated
        if any(each.restart_bias_correction for each in session.phases[before.phase + 1 : phase.index + 1]):
            trainee.engine.restart_steps()
        applied = 0
    last = f". Phase {phase.index} ends here, with the weights of that checkpoint, because these are its last batches"
    session.monitor.log.say(
        f"train: {state.skipped_in_a_row} updates in a row were dropped: training returns to {checkpoint.path.name} "
        f"and skips the batches {_ranges(left_out)}{last if phase.over(state.data_step, state.phase_seconds) else ''}"
    )
    return replace(
        state,
        optimizer_step=applied,
        norms=before.norms if same_phase else (),
        losses=before.losses if same_phase else (),
        scale=scale_from(trainee.precision.config, before.scale),
        skipped_in_a_row=0,
        left_out=(*state.left_out, *left_out),
    )


def refuse_no_update(session: Session, phase: Phase, state: State) -> None:
    """Raise `DivergedError` if a phase ends without an applied update: its weights are those it began with.

    All ranks must call this together, before the end of the phase is saved.
    """
    if not state.phase_end or state.optimizer_step:
        return
    # Bad updates are counted over the ends of phases: the next one may go back, or recover.
    if state.skipped_in_a_row and phase.index + 1 < len(session.phases):
        return
    scale = state.scale
    if scale is None or state.skipped_in_a_row:  # overflows that lowered the scale are not counted there
        what = "the gradient or the loss was never finite"
        advice = f"Lower train.phases.{phase.index}.learning_rate (now {phase.peak:g}) or raise its warmup"
    else:
        what = f"in fp16 the gradients overflowed in every step, the last time at a loss scale of {2 * scale.factor:,g}"
        advice = f"Lower train.precision.initial_scale to {scale.factor:g}, or train more steps"
    error = DivergedError(
        f"phase {phase.index} ends after {state.data_step:,} steps without an update: {what}, so nothing was "
        f"learnt. {advice}, and train in another folder."
    )
    _record_stop(session, phase, state, str(error))
    raise error


def _since(before: State, state: State) -> list[dict[str, int]]:
    """Return the batches drawn since `before`: for each phase its index, the first step, and the step after the last.

    The phase before the current one ends where the current one began, and phases in between at their recorded ends.
    """
    ranges, first = list[dict[str, int]](), before.data_step
    earlier = state.total_steps - state.data_step - before.total_steps
    for index in range(before.phase, state.phase):
        end = first + earlier if index == state.phase - 1 else state.ends[index]
        ranges.append({"phase": index, "from": first, "to": end})
        first, earlier = 0, earlier - (end - first)
    ranges.append({"phase": state.phase, "from": first, "to": state.data_step})
    return [each for each in ranges if each["from"] < each["to"]]


def _ranges(ranges: Sequence[Mapping[str, int]]) -> str:
    return " and ".join(f"{each['from']:,} to {each['to'] - 1:,} of phase {each['phase']}" for each in ranges)


def _divergence(session: Session, phase: Phase, state: State, returns: int) -> DivergedError:
    """Return the error that ends training, after adding it to the run's page. All ranks must call this together."""
    error = _divergence_error(session.guard, phase, state, returns)
    _record_stop(session, phase, state, str(error))
    return error


def _divergence_error(guard: GuardConfig, phase: Phase, state: State, returns: int) -> DivergedError:
    what = "not finite or far above the earlier values" if guard.spike or guard.loss_spike else "not finite"
    again = f", also after going back {returns} times" if returns else ""
    return DivergedError(
        f"the gradient or the loss was {what} in {state.skipped_in_a_row} steps in a row (phase {phase.index}, step "
        f"{state.data_step:,}){again}: training has diverged. Lower train.phases.{phase.index}.learning_rate (now "
        f"{phase.peak:g}) or raise its warmup, and train in another folder."
    )


def _record_stop(session: Session, phase: Phase, state: State, why: str) -> None:
    """Rewrite the run's page for the newest checkpoint, with the rows since then and the reason why training stopped.

    Without a checkpoint there is no page yet; only the row is written. Ranks without metrics write nothing.
    """
    if session.monitor.metrics is None:
        return
    place = {"phase": phase.index, "step": state.data_step, "steps": phase.steps, "total_steps": state.total_steps}
    # A separate row, which is cut with the others after the checkpoint when training resumes from there.
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    session.monitor.metrics.write({"time": now, **place, "saved": False, "stopped": why})
    for newest in sorted(session.checkpoints.folder.glob("step-*"))[-1:]:
        session.checkpoints.saved(newest)
