"""The network of a training, and what computes in its place: made once a start, for a precision and a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import torch

from bertwright.model.config import Kernel, NetworkConfig
from bertwright.model.model import Model, build_model
from bertwright.train.config import TrainConfig
from bertwright.train.precision.config import Fp8Config
from bertwright.train.precision.precision import Precision

if TYPE_CHECKING:
    from bertwright.train.graph.ortmodule import OrtNetwork
    from bertwright.train.precision.low_copy import LowCopy


class Network(NamedTuple):
    """The network of a training, and what computes in its place."""

    model: Model
    """With its weights in float32."""
    low: LowCopy | None = None
    """Its copy in low precision, where that computes."""
    exported: OrtNetwork | None = None
    """What runs its operations, where that is another program."""


def build_network(network: NetworkConfig, config: TrainConfig, precision: Precision, kernel: Kernel) -> Network:
    """The network with the weights of the seed, set to compute as the job says."""
    # Every rank draws the same initial weights from the seed, so none has to send them.
    torch.manual_seed(config.seed)
    model = build_model(network, kernel)
    model.to(precision.device).train()
    # Each is loaded only where it is chosen.
    if isinstance(precision.config, Fp8Config):
        from bertwright.train.precision.fp8 import to_float8

        to_float8(model, emulate=precision.device.type == "cpu")
    low = None
    if precision.weights is not None:
        from bertwright.train.precision.low_copy import LowCopy

        low = LowCopy(model, precision.weights)
    computing = low.network if low else model
    if config.checkpoint_activations:
        from bertwright.model.recompute import recompute_layers

        recompute_layers(computing.encoder)
    if config.graph.kind == "eager":
        return Network(model, low)
    from bertwright.train.graph.graph import run_as

    run = run_as(computing, config.graph, precision.device)
    return Network(model, low, None if run is computing else cast("OrtNetwork", run))
