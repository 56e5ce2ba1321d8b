"""One start of training: what stays the same over all phases, and what it writes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertwright.train.checkpoints.store import CheckpointStore
from bertwright.train.config import GuardConfig
from bertwright.train.machine.stop_requests import StopRequests
from bertwright.train.monitor.monitor import Monitor
from bertwright.train.ranks.agreement import check_same_weights
from bertwright.train.setup.trainee import Trainee

if TYPE_CHECKING:
    from bertwright.train.settings.phases import Phase


@dataclass(frozen=True)
class Session:
    """Created once per start; the training loop works with it."""

    trainee: Trainee
    phases: Sequence[Phase]
    monitor: Monitor
    """Receives what is measured."""
    checkpoints: CheckpointStore
    """Keeps checkpoints."""
    requests: StopRequests
    """External requests to stop or save."""
    guard: GuardConfig
    """How to handle bad gradients and losses."""
    compare_every: int = 0
    """Steps between comparisons of the weights of all ranks, which also precede each checkpoint; 0: never."""

    def compare_ranks(self, step: int, saving: bool) -> None:
        """If due, check that all ranks hold the same weights after `step`; all ranks must call this together.

        Skipped for engines whose ranks do not hold all weights.
        """
        if self.trainee.engine.has_full_weights and self.compare_every and (saving or step % self.compare_every == 0):
            check_same_weights(self.trainee.ranks, self.trainee.model, step)

    def write_graph(self, phase: Phase) -> None:
        """Write the network at the end of a phase as ONNX, on rank 0, if ONNX Runtime runs it."""
        trainee, world = self.trainee, self.trainee.ranks.world
        if trainee.exported is None or not trainee.ranks.first:
            return
        batch = trainee.read(trainee.to_compute(phase.loader.step(0, 0, world))[0], phase.shape(world))
        trainee.exported.write(self.checkpoints.folder.parent / f"phase-{phase.index}.onnx", batch)
