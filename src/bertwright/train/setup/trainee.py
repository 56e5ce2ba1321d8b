"""What is trained: network, objective, engine, ranks and precision; built once per start, on a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from bertwright.core.errors import RecipeError
from bertwright.examples.batch import MicroBatch
from bertwright.examples.padding import Room, in_rows, with_room
from bertwright.model.batch import PackedBatch, host_tensors, to_device
from bertwright.model.config import Kernel, NetworkConfig
from bertwright.model.model import Model, build_model
from bertwright.tasks.members import task_of
from bertwright.tasks.objective import Objective
from bertwright.tasks.terms import Summed, loss_sums
from bertwright.train.averaging.averaging import Averaging
from bertwright.train.config import TrainConfig
from bertwright.train.engine.chosen_rows import Rows
from bertwright.train.engine.engine import Engine
from bertwright.train.graph.config import CompiledConfig, EagerConfig, GraphConfig
from bertwright.train.graph.packages import graph_of
from bertwright.train.memory.rank_memory import select_kernel
from bertwright.train.precision.precision import LowCopy, Precision, build_precision
from bertwright.train.ranks.ranks import Ranks

if TYPE_CHECKING:
    from bertwright.train.graph.ortmodule import OrtNetwork
    from bertwright.train.graph.recorded import Recorder


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
    recorder: Recorder | None = None
    """Keeps the recording of a pass, if passes are recorded and replayed."""
    new_rows: Rows | None = None
    """The rows that phases of new rows train, if there are such phases."""

    def train_rows(self, rows: Rows | None) -> None:
        """Train only these rows from now on, or everything again (`Engine.train_rows`)."""
        self.engine.train_rows(rows)
        if self.low is not None:
            for copy, parameter in zip(self.low.network.parameters(), self.model.parameters(), strict=True):
                copy.requires_grad_(parameter.requires_grad)
        if self.recorder is not None:
            self.recorder.forget()

    def network(self) -> nn.Module:
        """Return the module that computes, with the current weights of `model`: `model` itself, its copy, or the
        exported module."""
        return self.exported or (self.model if self.low is None else self.low.refresh())

    def sum_losses(self, terms: Mapping[str, Summed]) -> Mapping[str, Tensor]:
        """Return the loss of each term of a batch, a scalar, for a backward pass: compiled if the network is."""
        if not isinstance(self.graph, CompiledConfig):
            return loss_sums(terms)
        from bertwright.train.graph.graph import compiled_losses

        return compiled_losses()(terms)

    def to_compute(self, batches: Sequence[MicroBatch]) -> list[MicroBatch]:
        """Return those of a rank's micro-batches that need a forward pass."""
        # A rank without sequences has an empty micro-batch: it makes no forward pass, but joins every all-reduce. If
        # other ranks need its shards of the weights, it computes one token of weight 0.
        if not self.engine.has_full_weights:
            batches = [batch if batch.counts.sequences else with_room(batch, 1, 1) for batch in batches]
        return [batch for batch in batches if batch.counts.sequences]

    def prepare(self, batch: MicroBatch, room: Callable[[], Room]) -> PackedBatch:
        """Return the batch in host memory in the network's input format, padded to the shape that `room` returns if the
        network is compiled or exported.

        Needs no weights, so another thread may call it while the network computes.
        """
        if self.graph.kind == "eager":
            return host_tensors(self.precision.fit(batch), self.precision.device)
        return host_tensors(in_rows(batch, room()), self.precision.device)

    def read(self, batch: MicroBatch, room: Callable[[], Room]) -> PackedBatch:
        """As `prepare`, on the network's device."""
        return to_device(self.prepare(batch, room), self.precision.device)


@dataclass(frozen=True)
class Network:
    """The network of a training, and the copy or exported module that computes in its place, if any."""

    model: Model
    """The network, with float32 weights."""
    config: TrainConfig
    """The settings it was built for."""
    precision: Precision
    """Numeric precision and device."""
    kernel: Kernel
    """Attention kernel."""
    low: LowCopy | None = None
    """Low-precision copy that computes in its place, if there is one."""
    exported: OrtNetwork | None = None
    """Module that runs its operations in another runtime, if there is one."""

    def trainee(self, engine: Engine, ranks: Ranks, pair_task: str, averaging: Averaging | None = None) -> Trainee:
        """Return the network with its engine and averaging, for the recipe's objective; `pair_task`: name of the loss
        term for pairs."""
        computing = self.low.network if self.low else self.model
        objective = task_of(self.config.objective).build(computing, pair_task)
        return Trainee(
            self.model,
            objective,
            engine,
            ranks,
            self.precision,
            self.low,
            self.config.graph,
            self.exported,
            averaging,
        )


def build_network(network: NetworkConfig, config: TrainConfig, device: torch.device) -> Network:
    """Build the network on a device with initial weights from the seed, set up to compute as the recipe says.

    Raises `RecipeError` if the device or the network does not support that.
    """
    graph = graph_of(config, device.type == "cuda")
    config = config.model_copy(update={"graph": graph})
    precision = build_precision(config.precision, device)
    kernel = _kernel(config, network, precision)
    # Every rank draws the same initial weights from the seed, so none has to send them.
    torch.manual_seed(config.seed)
    model = build_model(network, kernel)
    model.to(device).train()
    low = None
    if precision.weights is not None:
        low = LowCopy(model, precision.weights)
    computing = low.network if low else model
    if config.kernels != "torch":
        from bertwright.model import fused, layers

        if reason := fused.refusal(device):
            raise RecipeError(f"train.kernels = {config.kernels} {reason}.")
        layers.use_kernels(computing, config.kernels)
    made = Network(model, config, precision, kernel, low)
    if graph.kind != "eager":
        from bertwright.train.graph.graph import run_as

        run = run_as(computing, graph, device)
        made = made if run is computing else replace(made, exported=cast("OrtNetwork", run))
    if config.checkpoint_activations:
        from bertwright.model.encoder import recompute_layers

        recompute_layers(computing.encoder)
    return made


def _kernel(config: TrainConfig, network: NetworkConfig, precision: Precision) -> Kernel:
    """Return the attention kernel to train with.

    Raises `RecipeError` if it does not support the device, the network or this precision.
    """
    kernel = select_kernel(config, precision.device.type)
    if kernel == "varlen":
        from bertwright.model.attention import varlen

        if reason := varlen.refusal(precision.device, precision.low, network):
            raise RecipeError(f"train.attention = varlen {reason}.")
    if kernel == "triton":
        from bertwright.model.attention import triton

        if reason := triton.refusal(precision.device, network):
            raise RecipeError(f"train.attention = triton {reason}.")
    return kernel
