"""The network of a training and how it computes; built once per start, on a device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import torch

from bertwright.core.errors import RecipeError
from bertwright.model.config import Kernel, NetworkConfig
from bertwright.model.model import Model, build_model
from bertwright.tasks.members import task_of
from bertwright.train.averaging.averaging import Averaging
from bertwright.train.config import TrainConfig
from bertwright.train.engine.engine import Engine
from bertwright.train.memory.rank_memory import chosen_kernel
from bertwright.train.precision.config import Fp8Config
from bertwright.train.precision.precision import Precision, build_precision
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.setup.trainee import Trainee

if TYPE_CHECKING:
    from bertwright.train.graph.ortmodule import OrtNetwork
    from bertwright.train.precision.low_copy import LowCopy


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
    precision = build_precision(config.precision, device)
    kernel = _kernel(config, network, precision)
    # Every rank draws the same initial weights from the seed, so none has to send them.
    torch.manual_seed(config.seed)
    model = build_model(network, kernel)
    model.to(device).train()
    # Each module is imported only if it is chosen.
    if isinstance(precision.config, Fp8Config):
        from bertwright.train.precision.fp8 import to_float8

        to_float8(model, emulate=device.type == "cpu")
    low = None
    if precision.weights is not None:
        from bertwright.train.precision.low_copy import LowCopy

        low = LowCopy(model, precision.weights)
    computing = low.network if low else model
    if config.checkpoint_activations:
        from bertwright.model.recompute import recompute_layers

        recompute_layers(computing.encoder)
    made = Network(model, config, precision, kernel, low)
    if config.graph.kind == "eager":
        return made
    from bertwright.train.graph.graph import run_as

    run = run_as(computing, config.graph, device)
    return made if run is computing else replace(made, exported=cast("OrtNetwork", run))


def _kernel(config: TrainConfig, network: NetworkConfig, precision: Precision) -> Kernel:
    """Return the attention kernel to train with.

    Raises `RecipeError` if it does not support the device, the network or this precision.
    """
    kernel = chosen_kernel(config, precision.device.type)
    if kernel == "varlen":
        from bertwright.model.attention import varlen

        if reason := varlen.refusal(precision.device, precision.low, network):
            raise RecipeError(f"train.attention = varlen {reason}.")
    return kernel
