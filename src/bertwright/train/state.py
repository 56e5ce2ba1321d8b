"""The progress of a training: everything that a checkpoint holds besides its tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_json, read_typed
from bertwright.train.precision.loss_scale import LossScale
from bertwright.train.shapes import Start


@dataclass(frozen=True)
class PhaseEnd:
    """How a phase ended."""

    phase: int
    """Index of the phase."""
    step: int
    """Its last step."""
    early: bool
    """Whether that was before its planned end, because it reached its target or its time was used up."""
    target_accuracy: float | None
    """The target that it had (`train.phases.N.target_accuracy`), whether or not it was reached."""


@dataclass(frozen=True)
class State:
    """The progress of a training; everything else follows from the recipe."""

    phase: int = 0
    """Index of the phase."""
    data_step: int = 0
    """Global batches drawn in this phase; always advances."""
    optimizer_step: int = 0
    """Updates applied in this phase; the schedule and the bias correction follow it."""
    total_steps: int = 0
    """Global batches drawn over all phases."""
    skipped_in_a_row: int = 0
    """Updates dropped since the last applied one (`train.guard`), without overflows that only lowered the scale."""
    sequences_seen: int = 0
    """Sequences trained on, over all ranks and phases."""
    tokens_seen: int = 0
    """Real (not padding) tokens trained on, over all ranks and phases."""
    flops: float = 0.0
    """Floating-point operations of the model (`model.flops`), over all ranks and phases."""
    seconds: float = 0.0
    """Seconds spent in training steps, and before them in making embeddings from the text (`train.init_embeddings`),
    over all phases and starts."""
    phase_seconds: float = 0.0
    """Seconds spent in training steps of this phase, over all starts; the rate of a phase with `hours` follows it."""
    other_seconds: float = 0.0
    """Seconds spent on scoring and saving, over all phases and starts."""
    phase_steps: tuple[int, ...] = ()
    """The length of every phase in steps when this state was trained; the learning rate follows it."""
    phase_ends: tuple[int, ...] = ()
    """The step after which each phase is planned to end: earlier than its length if `end_after` says so."""
    ended: tuple[PhaseEnd, ...] = ()
    """How each phase before this one ended."""
    extensions: tuple[Mapping[str, int], ...] = ()
    """Phases that grew after they had begun: phase, step, old and new length."""
    sessions: tuple[Mapping[str, Any], ...] = ()
    """One entry per start of the program: its first step, and what bit-identity depends on."""
    scale: LossScale | None = None
    """The loss scale of the next step; None if the loss is not scaled."""
    norms: tuple[float, ...] = ()
    """Gradient norms of the last applied updates of this phase, if later updates are judged by them (`train.guard`)."""
    losses: tuple[float, ...] = ()
    """Losses of the steps of the last applied updates, likewise."""
    left_out: tuple[Mapping[str, int], ...] = ()
    """Batches skipped when training rolled back: phase, first step, and the step after the last. The last entry of each
    return belongs to the phase that was running; earlier ones belong to phases that had ended."""
    heldout: Mapping[str, float] = field(default_factory=dict)
    """Held-out scores at this step, if it was scored."""
    phase_end: bool = False
    """Whether this is the last step of its phase."""
    due: bool = False
    """Whether it was saved because the recipe says so, not because of a signal."""
    unscored: bool = False
    """Whether a request to stop cut short the scoring of this step, which training continues with."""

    @property
    def hours(self) -> float:
        """Hours spent on training, scoring and saving over all starts."""
        return (self.seconds + self.other_seconds) / 3600

    @property
    def judged(self) -> float | None:
        """The held-out loss by which checkpoints are compared (lower is better); None if it was not scored."""
        # Scores are in the order of the objective's terms, of which the first decides (`objectives.judged_by`).
        return next((score for name, score in self.heldout.items() if name.endswith("_loss")), None)

    @property
    def ends(self) -> tuple[int, ...]:
        """The step after which each phase has ended; for phases that have not, the planned one."""
        known = {end.phase: end.step for end in self.ended}
        if self.phase_end:
            known[self.phase] = self.data_step
        return tuple(known.get(phase, planned) for phase, planned in enumerate(self.phase_ends))

    def next_phase(self, phase: int, early: bool = False, target_accuracy: float | None = None) -> State:
        """Return the state at the beginning of another phase, without the history of norms and losses; the other
        arguments are recorded of the phase that ended (`PhaseEnd`).

        With other sequence lengths or masking rates, norms and losses have other values.
        """
        return replace(
            self,
            phase=phase,
            ended=(*self.ended, PhaseEnd(self.phase, self.data_step, early, target_accuracy)),
            data_step=0,
            optimizer_step=0,
            phase_seconds=0.0,
            phase_end=False,
            heldout={},
            norms=(),
            losses=(),
        )

    def next_step(
        self,
        applied: bool,
        sequences: int,
        tokens: int,
        seconds: float,
        scale: LossScale | None,
        overflowed: bool = False,
    ) -> State:
        """Return the state after one more global batch; `scale` is the loss scale of the next one. A dropped update
        that `overflowed` is not counted as bad."""
        return replace(
            self,
            data_step=self.data_step + 1,
            optimizer_step=self.optimizer_step + applied,
            total_steps=self.total_steps + 1,
            skipped_in_a_row=0 if applied else self.skipped_in_a_row + (not overflowed),
            sequences_seen=self.sequences_seen + sequences,
            tokens_seen=self.tokens_seen + tokens,
            seconds=self.seconds + seconds,
            phase_seconds=self.phase_seconds + seconds,
            scale=scale,
            # Scores belong to the weights of one step; after another step there are none until it is scored.
            heldout={},
        )


_STATE = TypeAdapter(State)
_STARTS = TypeAdapter(list[Start])


def state_of(checkpoint: Artifact) -> State:
    """Return the state of a checkpoint; raise `ArtifactError` if no training can have been in that state."""
    path = checkpoint.file("state.json")
    state, written = read_typed(path, _STATE), read_json(path)
    try:
        _STARTS.validate_python(written.get("sessions", []))
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise ArtifactError(
            f"{path} is not valid: sessions.{where}: {error.errors()[0]['msg']}. Restore it, or take an older "
            "checkpoint."
        ) from error
    # The seal proves that the file is the one that was written, not that its content is a possible state.
    numbers = [value for name, value in vars(state).items() if isinstance(value, int | float) and name != "flops"]
    # A dataclass would fill missing fields with defaults, and training would restart from step 0.
    missing = [field.name for field in fields(State) if field.name not in written]
    if missing or not all(0 <= number < 2**62 for number in numbers) or not _possible(state):
        what = f"it lacks {', '.join(missing)}" if missing else "no training can be in this state"
        raise ArtifactError(f"{path} is not valid: {what}. Restore it, or take an older checkpoint.")
    return state


def best_of(states: Mapping[Path, State]) -> Path | None:
    """Return the checkpoint with the lowest held-out loss (`State.judged`) in the latest phase that has one."""
    judged = ((state.phase, state.judged, path) for path, state in states.items())
    scored = [(-phase, loss, path) for phase, loss, path in judged if loss is not None and math.isfinite(loss)]
    return min(scored)[2] if scored else None


def _possible(state: State) -> bool:
    steps = state.phase_steps
    return (
        # A large training takes 10^23 operations, more than any other number here may be.
        0 <= state.flops < 1e30
        and (not steps or state.phase < len(steps))
        and len(steps) == len(state.phase_ends)
        and [end.phase for end in state.ended] == list(range(state.phase))
        and all(0 < length < 2**62 for length in steps)
        and state.optimizer_step <= state.data_step <= min((state.total_steps, *steps[state.phase : state.phase + 1]))
    )
