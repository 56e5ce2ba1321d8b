"""What is trained: network, objective, engine, ranks and precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch import nn

from bertwright.examples.batch import MicroBatch
from bertwright.examples.padding import Room, in_rows, with_room
from bertwright.model.batch import PackedBatch, host_tensors, to_device
from bertwright.tasks.objective import Objective
from bertwright.train.averaging.averaging import Averaging
from bertwright.train.engine.engine import Engine
from bertwright.train.graph.config import EagerConfig, GraphConfig
from bertwright.train.precision.precision import Precision
from bertwright.train.ranks.ranks import Ranks

if TYPE_CHECKING:
    from bertwright.train.graph.ortmodule import OrtNetwork
    from bertwright.train.precision.low_copy import LowCopy

_SIZES = {"compiled": 8, "ortmodule": 1}
"""Number of sizes to which the number of predictions in a batch is rounded up. Each size needs a separate graph, which
takes an exporter longest to build."""


@dataclass(frozen=True)
class Trainee:
    """What is trained, with which objective and ranks: the same in every step."""

    model: nn.Module
    objective: Objective
    engine: Engine
    ranks: Ranks
    precision: Precision
    """Numeric precision and device."""
    low: LowCopy | None = None
    """Low-precision copy that computes in place of `model`, if weights are in low precision, too."""
    graph: GraphConfig = field(default_factory=EagerConfig)
    """How the network's operations are executed."""
    exported: OrtNetwork | None = None
    """Module that runs the operations of `model`, with the same parameters, in another runtime, if there is one."""
    averaging: Averaging | None = None
    """The average of the weights, if one is kept."""

    def network(self) -> nn.Module:
        """Return the module that computes, with the current weights of `model`: `model` itself, its copy, or the
        exported module."""
        return self.exported or (self.model if self.low is None else self.low.refreshed())

    def to_compute(self, batches: Sequence[MicroBatch]) -> list[MicroBatch]:
        """Return those of a rank's micro-batches that need a forward pass."""
        # A rank without sequences has an empty micro-batch: it makes no forward pass, but joins every all-reduce. If
        # other ranks need its shards of the weights, it computes one token of weight 0.
        if not self.engine.has_full_weights:
            batches = [batch if batch.counts.sequences else with_room(batch, 1, 1) for batch in batches]
        return [batch for batch in batches if batch.counts.sequences]

    def prepare(self, batch: MicroBatch, room: Room) -> PackedBatch:
        """Return the batch in host memory in the network's input format, padded to the shape `room` if the network is
        compiled or exported.

        Needs no weights, so another thread may call it while the network computes.
        """
        if self.graph.kind == "eager":
            return host_tensors(self.precision.fit(batch), self.precision.device)
        return host_tensors(in_rows(batch, room, _SIZES[self.graph.kind]), self.precision.device)

    def read(self, batch: MicroBatch, room: Room) -> PackedBatch:
        """As `prepare`, on the network's device."""
        return to_device(self.prepare(batch, room), self.precision.device)
