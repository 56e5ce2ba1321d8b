"""Checks whether training may continue after phase lengths or ends changed. Does not import torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bertwright.core.errors import ArtifactError
from bertwright.train.settings.phase_config import PhaseConfig
from bertwright.train.settings.phases import Phase
from bertwright.train.state import PhaseEnd, State


def check_phase_lengths(state: State, phases: Sequence[Phase]) -> State:
    """Return `state` with the recipe's phase lengths. A phase that has begun may grow; one that has ended may not
    change.

    A running phase may also end early, but not at a step that has passed. Its rates still follow its full length, so it
    is the phase that the same recipe gives undisturbed; a phase that grows is not, and the growth is recorded. Raises
    `ArtifactError`, naming the phase, for any other change.
    """
    ends = {end.phase: end for end in state.ended}
    # A state at step 0 has no lengths yet, and one with fewer phases than the recipe has none for the new ones.
    for phase, length in zip(phases, state.phase_steps, strict=False):
        index, wanted = phase.index, phase.schedule_steps
        ended = index < state.phase
        begun = index == state.phase and state.data_step > 0
        if length != wanted and (ended or (begun and wanted < length)):
            raise ArtifactError(
                f"train.phases.{index} was {'trained' if ended else 'begun'} with {length:,} steps, but the recipe "
                f"now says {wanted:,}. It "
                f"{'has ended and cannot change' if ended else 'may become longer, but not shorter'}: set it "
                f"back{'' if ended else ', or say where it ends (end_after)'}, or train in another folder (--out DIR)."
            )
        if ended:
            _refuse_other_end(phase, ends[index], length)
        if begun and phase.steps < state.data_step:
            raise ArtifactError(
                f"train.phases.{index}.end_after={phase.steps}: step {state.data_step:,} is already done. To end the "
                f"phase there, set {_end_key(index, state.data_step, wanted)}."
            )
        if length != wanted and begun:
            # The steps so far followed the rates of the shorter length, so the model differs from that of the longer
            # recipe.
            extension = {"phase": index, "step": state.data_step, "from": length, "to": wanted}
            state = replace(state, extensions=(*state.extensions, extension))
    return replace(
        state,
        phase_steps=tuple(phase.schedule_steps for phase in phases),
        phase_ends=tuple(phase.steps for phase in phases),
    )


def growth_message(extension: Mapping[str, int], phase: Phase, config: PhaseConfig, state: State) -> str:
    """Say, for the log, how the learning rate changes where a phase (`config` in the recipe) has grown."""
    before = extension["from"]
    grown = f"phase {phase.index} grows from {before:,} to {extension['to']:,} steps at step {extension['step']:,}"
    if phase.budget:  # its rate follows time
        return grown
    shorter = replace(phase, schedule_steps=before, warmup_steps=config.warmup_steps(before))
    last = shorter.rate(max(min(state.optimizer_step, before) - 1, 0), 0.0)
    following = phase.rate(state.optimizer_step, 0.0)
    risen = ": the shorter schedule had already decayed, so the loss may rise at first" if following > 2 * last else ""
    return f"{grown}, and its learning rate goes from {last:.2g} to {following:.2g}{risen}"


def _refuse_other_end(phase: Phase, end: PhaseEnd, length: int) -> None:
    """Raise `ArtifactError` if a phase of `length` steps would not have ended at `end` with the recipe's values."""
    key = f"train.phases.{phase.index}"
    if phase.target_accuracy != end.target_accuracy:
        was, now = (_target(value) for value in (end.target_accuracy, phase.target_accuracy))
        value = "" if end.target_accuracy is None else f"{end.target_accuracy:g}"
        raise ArtifactError(
            f"{key} has ended after step {end.step:,} with {was}, but the recipe now has {now}. It has ended and "
            f"cannot change: set {key}.target_accuracy={value}, or train in another folder (--out DIR)."
        )
    # What ended it before its planned end would have done so before any later one.
    if phase.steps != end.step and not (end.early and phase.steps > end.step):
        raise ArtifactError(
            f"{key} has ended after step {end.step:,} and cannot end after {phase.steps:,} now. Set "
            f"{_end_key(phase.index, end.step, length)}, or train in another folder (--out DIR)."
        )


def _target(accuracy: float | None) -> str:
    return "no target_accuracy" if accuracy is None else f"target_accuracy {accuracy:g}"


def _end_key(index: int, end: int, length: int) -> str:
    return f"train.phases.{index}.end_after={'' if end == length else end}"
