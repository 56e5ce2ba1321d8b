"""What a rank holds of weights, gradients and the optimizer's state, by engine, in bytes. Knows no torch.

Numbers are float32. Of an engine that deals unequal parts it is the rank that has most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from bertwright.model.config import NetworkConfig
from bertwright.optim.by_name import moments_of
from bertwright.optim.config import AdamWConfig, LambConfig, MuonConfig, OptimConfig
from bertwright.train.engine.config import (
    DdpConfig,
    DeepSpeedConfig,
    EngineConfig,
    FsdpConfig,
    SingleConfig,
    ZeroConfig,
    chosen,
)
from bertwright.train.engine.partition import owned, part

_DEEPSPEED_BUCKET = 5e8
"""Numbers that DeepSpeed gathers gradients in where its configuration says no other."""
_DEEPSPEED_LIVE = 1e9
"""Numbers of weights that its stage 3 leaves together from a forward pass to the backward pass, likewise."""


@dataclass(frozen=True)
class Sharing:
    """Who holds what, as far as memory depends on it."""

    engine: EngineConfig = field(default_factory=SingleConfig)
    optim: OptimConfig = field(default_factory=AdamWConfig)
    ranks: int = 1


@dataclass(frozen=True)
class Held:
    """Bytes on the rank that has most."""

    weights: float
    """What computes, and the part that the optimizer moves where that is a copy."""
    gradients: float
    moments: float
    """What the optimizer keeps from update to update."""
    scratch: float
    """The most that a step takes for a while: the second gradient of an embedding that is read twice, messages of
    gradients, updates before they are applied."""
    gathered: float
    """What is put together, from the parts of all ranks, where a whole state is asked for."""


def held_bytes(network: NetworkConfig, sharing: Sharing, accumulates: bool = True) -> Held:
    """What training the network takes on a rank beside what it computes; `accumulates`: in several micro-batches."""
    tensors, ranks = network.tensors, sharing.ranks
    engine = chosen(sharing.engine, ranks)
    sizes = {name: prod(shape) for name, shape in tensors.items()}
    whole, embedding = 4.0 * sum(sizes.values()), 4.0 * network.vocab_size * network.hidden_size
    moments = max(moment_bytes(network, sharing, rank) for rank in range(ranks))
    all_moments = moment_bytes(network, Sharing(optim=sharing.optim), 0)
    match engine:
        case DdpConfig() | ZeroConfig():
            own = sizes if isinstance(engine, DdpConfig) else {n: sizes[n] for n in owned(sizes, ranks)[0]}
            sums = whole * (1.0 if engine.reduction == "fp32" else 0.5) if ranks > 1 else 0.0
            sent = 4.0 * sum(own.values()) if isinstance(engine, ZeroConfig) and ranks > 1 else 0.0
            scratch = max(embedding, sums, sent, _update_bytes(network, sharing.optim, own))
            return Held(whole, whole, moments, scratch, all_moments if isinstance(engine, ZeroConfig) else 0.0)
        case FsdpConfig():
            parts = {name: part(shape, ranks, 0) for name, shape in tensors.items()}
            working = 4.0 * _at_a_time(network, sizes)
            scratch = max(embedding, _update_bytes(network, sharing.optim, parts))
            # Gradients of micro-batches are added up whole, so that a step sends one sum.
            gradients = whole if accumulates and ranks > 1 else 4.0 * sum(parts.values()) + working
            return Held(4.0 * sum(parts.values()) + working, gradients, moments, scratch, whole + all_moments)
        case DeepSpeedConfig():
            gradients = whole if engine.stage == 1 else whole / ranks
            scratch = max(embedding, min(4 * _DEEPSPEED_BUCKET, whole))
            computing = min(4 * _DEEPSPEED_LIVE, whole) if engine.stage == 3 else whole
            return Held(computing + whole / ranks, gradients, moments, scratch, whole + all_moments)
        case _:
            return Held(whole, whole, moments, max(embedding, _update_bytes(network, sharing.optim, sizes)), 0.0)


def state_bytes(network: NetworkConfig, optim: OptimConfig) -> float:
    """Weights and moments of the whole network: what a checkpoint has, but for averages."""
    return 4.0 * network.parameters + moment_bytes(network, Sharing(optim=optim), 0)


def moment_bytes(network: NetworkConfig, sharing: Sharing, rank: int) -> float:
    """What the optimizer of a rank keeps from update to update, but for its counts of updates."""
    tensors, ranks, engine = network.tensors, sharing.ranks, chosen(sharing.engine, sharing.ranks)
    each = {name: 4.0 * moments_of(sharing.optim, name, len(shape)) for name, shape in tensors.items()}
    sizes = {name: prod(shape) for name, shape in tensors.items()}
    if isinstance(engine, ZeroConfig):
        return sum(each[name] * sizes[name] for name in owned(sizes, ranks)[rank])
    if isinstance(engine, FsdpConfig):
        return sum(each[name] * part(shape, ranks, rank) for name, shape in tensors.items())
    return sum(each[name] * size for name, size in sizes.items()) / (ranks if engine.kind == "deepspeed" else 1)


def _update_bytes(network: NetworkConfig, optim: OptimConfig, own: Mapping[str, int]) -> float:
    """What an optimizer that moves so many numbers of each tensor takes for the length of an update."""
    if isinstance(optim, LambConfig):
        return 4.0 * sum(own.values())
    if isinstance(optim, MuonConfig):
        # The direction, two powers of it and a product, one matrix after another.
        return 16.0 * network.hidden_size * network.intermediate_size
    return 0.0


def _at_a_time(network: NetworkConfig, sizes: Mapping[str, int]) -> int:
    """Numbers of weights that are whole at a time where a layer is put together when it computes: what is outside the
    layers, a layer, and the next one on its way."""
    layers = sum(size for name, size in sizes.items() if ".layers." in name)
    return sum(sizes.values()) - layers + 2 * layers // network.num_hidden_layers
