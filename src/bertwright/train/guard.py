"""What is done about a gradient that is not finite, or far longer than those before it.

Such an update is dropped: the weights stay, the schedule waits, and the step counts as skipped. Where so many in a row
are dropped that the weights themselves must be bad, training goes back to the newest checkpoint before them, leaves out
the batches since, and goes on; where that is not allowed, or was done often enough, it stops and says so. All of it is
a function of the norms, which are the same on all ranks, and of the state, so a resumed run does the same.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bertwright.core.errors import DataError
from bertwright.optim.state import load_named_state, reset_steps
from bertwright.train.checkpoint import load, load_average, newest_sound
from bertwright.train.guard_config import GuardConfig
from bertwright.train.phases import Phase
from bertwright.train.session import Session
from bertwright.train.state import State


def norm_limit(guard: GuardConfig, state: State) -> float:
    """The gradient norm above which the next update is dropped; infinite where none is."""
    if not guard.spike or len(state.norms) < guard.window:
        return math.inf
    return guard.spike * statistics.median(state.norms)


def noted(guard: GuardConfig, state: State, norm: float, applied: bool) -> State:
    """The state with the norm of an applied update among those that the next ones are judged by."""
    # Without a limit nothing is judged, and a state that is written often stays small.
    if not guard.spike or not applied:
        return state
    return replace(state, norms=(*state.norms, norm)[-guard.window :])


def go_back(session: Session, phase: Phase, state: State) -> State:
    """The state to go on with after too many dropped updates: that of an earlier checkpoint, but at the batch reached.

    Weights and moments are the checkpoint's. Raises `DataError` where training may not go back in this phase (any
    more), or has no such checkpoint.
    """
    guard, gone_back = session.guard, sum(entry["phase"] == phase.index for entry in state.left_out)
    ranks = session.trained.ranks
    ranks.barrier()  # the first rank may still be writing the very checkpoint that the others look for
    checkpoint = newest_sound(session.folder, session.log) if gone_back < guard.returns else None
    if checkpoint is None:
        raise _diverged(guard, phase, state, gone_back)
    ranks.assert_equal(checkpoint.path.name, "the checkpoint to go back to")
    before, weights, moments = load(checkpoint)
    trained = session.trained
    trained.model.load_state_dict(weights)
    load_named_state(trained.optimizer, trained.model, moments, trained.moments)
    if session.averaging:
        session.averaging.load(load_average(checkpoint), trained.model.state_dict())
    left_out, applied = _since(before, state), before.optimizer_step
    if before.phase < phase.index:  # the hand-overs since are done again
        if any(each.restart_bias_correction for each in session.forecast.phases[before.phase + 1 : phase.index + 1]):
            reset_steps(trained.optimizer)
        applied = 0
    session.log.say(
        f"train: {state.skipped_in_a_row} updates in a row were dropped: back to {checkpoint.path.name}, without the "
        f"batches {_said(left_out)}"
    )
    return replace(
        state,
        optimizer_step=applied,
        norms=before.norms,
        scale=before.scale,
        skipped_in_a_row=0,
        left_out=(*state.left_out, *left_out),
    )


def _since(before: State, state: State) -> list[dict[str, int]]:
    """The batches drawn since `before`: for each phase its index, the first step, and the step after the last.

    The phase before the one that is under way ends where this one began, also where `hours` ended it early; of others
    in between their length is taken.
    """
    ranges, first = list[dict[str, int]](), before.data_step
    earlier = state.total_steps - state.data_step - before.total_steps
    for index in range(before.phase, state.phase):
        end = first + earlier if index == state.phase - 1 else min(state.phase_ends[index], first + earlier)
        ranges.append({"phase": index, "from": first, "to": end})
        first, earlier = 0, earlier - (end - first)
    ranges.append({"phase": state.phase, "from": first, "to": state.data_step})
    return [each for each in ranges if each["from"] < each["to"]]


def _said(ranges: Sequence[Mapping[str, int]]) -> str:
    return " and ".join(f"{each['from']:,} to {each['to'] - 1:,} of phase {each['phase']}" for each in ranges)


def _diverged(guard: GuardConfig, phase: Phase, state: State, gone_back: int) -> DataError:
    what = "not finite or far too long" if guard.spike else "not finite"
    again = f", also after going back {gone_back} times" if gone_back else ""
    return DataError(
        f"the gradient was {what} in {state.skipped_in_a_row} steps in a row (phase {phase.index}, step "
        f"{state.data_step:,}){again}: training has diverged. Lower train.phases.{phase.index}.learning_rate (now "
        f"{phase.peak:g}) or raise its warmup, and start in another folder."
    )
