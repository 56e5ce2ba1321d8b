"""What is trained, for what, in which numbers and among whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch import nn

from bertwright.examples.batch import MicroBatch
from bertwright.examples.padding import Room, in_rows, with_room
from bertwright.model.batch import PackedBatch, host_tensors, to_device
from bertwright.objectives.objective import Objective
from bertwright.train.engine.engine import Engine
from bertwright.train.graph.config import EagerConfig, GraphConfig
from bertwright.train.precision.precision import Precision
from bertwright.train.ranks import Ranks

if TYPE_CHECKING:
    from bertwright.train.graph.ortmodule import OrtNetwork
    from bertwright.train.precision.low_copy import LowCopy

_SIZES = {"compiled": 8, "ortmodule": 1}
"""To how many sizes the number of predictions in a batch is rounded up. Each size is a graph of its own, which
an exporter takes longest to make."""


@dataclass(frozen=True)
class Trained:
    """What is trained, for what, and among whom: the same in every step."""

    model: nn.Module
    objective: Objective
    engine: Engine
    ranks: Ranks
    precision: Precision
    """In which numbers, and on which device."""
    low: LowCopy | None = None
    """What computes in place of `model`, where that is in low precision weights and all."""
    graph: GraphConfig = field(default_factory=EagerConfig)
    """How the operations of what computes are run."""
    exported: OrtNetwork | None = None
    """What runs the operations of `model`, with its very weights, where that is another program."""

    def network(self) -> nn.Module:
        """What computes, with the weights that `model` has now: itself, its copy, or the program that it went to."""
        return self.exported or (self.model if self.low is None else self.low.refreshed())

    def to_compute(self, batches: Sequence[MicroBatch]) -> list[MicroBatch]:
        """Those of a rank's micro-batches that it makes a forward pass of."""
        # A rank that is left without sequences has an empty micro-batch: no forward pass, but it joins every sum. Where
        # the others need its parts of the weights, it computes a token of weight 0.
        if not self.engine.whole:
            batches = [batch if batch.counts.sequences else with_room(batch, 1, 1) for batch in batches]
        return [batch for batch in batches if batch.counts.sequences]

    def prepare(self, batch: MicroBatch, room: Room) -> PackedBatch:
        """The batch in the host's memory as the network reads it, of the shape `room` where the network is compiled for
        one or exported; needs no weights, so another thread may do it while the network computes."""
        if self.graph.kind == "eager":
            return host_tensors(self.precision.fit(batch), self.precision.device)
        return host_tensors(in_rows(batch, room, _SIZES[self.graph.kind]), self.precision.device)

    def read(self, batch: MicroBatch, room: Room) -> PackedBatch:
        """As `prepare`, on the network's device."""
        return to_device(self.prepare(batch, room), self.precision.device)
