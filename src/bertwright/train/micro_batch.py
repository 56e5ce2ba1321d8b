"""What a rank trains on at a step, in micro-batches of the size that was found at the start, or of smaller ones.

Where the recipe leaves the size open (`micro_batch = "auto"`), `found_size` finds one. Running out of memory kills a
process on a CPU, so there its rules alone decide; a GPU says so, and the step is trained again from its beginning in
micro-batches of half the size, as are all after it. The global batch, its masks and its counts stay the same: another
size changes the order of summation, and which elements dropout drops, as it is drawn for each micro-batch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch

from bertwright.core.log import Log
from bertwright.examples.batch import MicroBatch
from bertwright.examples.loader import Loader, StepCounts
from bertwright.model.batch import PackedBatch
from bertwright.train.facts import micro_batching_of
from bertwright.train.phases import Phase
from bertwright.train.state import State
from bertwright.train.trained import Trained


class Drawn(NamedTuple):
    """A rank's part of a step, and the loader that it came from."""

    loader: Loader
    micro_batches: list[MicroBatch]
    prepared: list[PackedBatch]
    """Those with sequences, in the host's memory as the network reads them (`Trained.prepare`)."""


class BatchSource:
    """What a rank trains on at each step of a phase: in smaller micro-batches once memory has run out."""

    def __init__(self, phase: Phase, trained: Trained, log: Log) -> None:
        self.phase, self.ranks, self.log = phase, trained.ranks, log
        self._to_compute, self._prepare = trained.to_compute, trained.prepare

    def fetch(self, step: int) -> tuple[Drawn, StepCounts]:
        """The rank's part of `step`, and its counts of the step after it; called on another thread."""
        phase = self.phase
        return self._drawn(phase, step), phase.loader.counts(step + 1, self.ranks.rank, self.ranks.world)

    def current(self, step: int, drawn: Drawn) -> Drawn:
        """The rank's part of `step`; drawn again where it was drawn ahead, or trained in vain, before the
        micro-batches became smaller."""
        return drawn if drawn.loader is self.phase.loader else self._drawn(self.phase, step)

    def can_halve(self, step: int) -> bool:
        """Whether the micro-batches of `step` may be made smaller. That does not help where memory runs out in an
        update, which is another error."""
        return self.phase.finds_micro_batch and self._size(step) > 1

    def halve(self, step: int) -> None:
        """Halve the micro-batches of `step` and of all steps of the phase after it, and say so."""
        before = self._size(step)
        self.phase = self.phase.with_micro_batch(before // 2)
        torch.cuda.empty_cache()  # blocks of the sizes of before would be kept beside those of the new ones
        self.log.say(
            f"train: out of memory in step {step + 1:,} of phase {self.phase.index}, which is trained again: "
            f"micro-batches of {before:,} become {before // 2:,}, here and in all later steps of this phase"
        )

    def noted(self, state: State) -> State:
        """The state that records the size, for the run to go on with it."""
        *earlier, last = state.sessions
        sizes, index = list(last["micro_batches"]), self.phase.index
        if sizes[index] == micro_batching_of(self.phase):
            return state
        sizes[index] = micro_batching_of(self.phase)
        return replace(state, sessions=(*earlier, {**last, "micro_batches": sizes}))

    def _drawn(self, phase: Phase, step: int) -> Drawn:
        batches, room = phase.loader.step(step, self.ranks.rank, self.ranks.world), phase.shape(self.ranks.world)
        prepared = [self._prepare(batch, room) for batch in self._to_compute(batches)]
        return Drawn(phase.loader, batches, prepared)

    def _size(self, step: int) -> int:
        """Sequences (or rows) of the largest micro-batch of a step, at most."""
        settings = self.phase.loader.settings
        share = -(-settings.batches.at(step) // self.ranks.world)
        return min(settings.micro_batching.micro_batch, share)
