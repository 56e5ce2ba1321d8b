"""Bytes of weights, gradients and optimizer state that a rank holds, by engine. Does not import torch.

Elements are float32. For engines with unequal shares, the values are those of the rank with the most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from bertwright.model.config import NetworkConfig, has_row_per_entry
from bertwright.optim.by_name import matrices_of, moments_of
from bertwright.optim.config import AdamWConfig, LambConfig, MuonConfig, OptimConfig
from bertwright.train.engine.config import (
    DdpConfig,
    DeepSpeedConfig,
    EngineConfig,
    FsdpConfig,
    SingleConfig,
    ZeroConfig,
    resolve_engine,
)
from bertwright.train.engine.partition import deal_out, part

_DEEPSPEED_BUCKET = 5e8
"""Elements of DeepSpeed's gradient bucket, if its configuration sets no other size."""
_DEEPSPEED_LIVE = 1e9
"""Elements of weights that its stage 3 keeps gathered from the forward to the backward pass, likewise."""


@dataclass(frozen=True)
class Sharing:
    """How ranks share the state, as far as memory depends on it."""

    engine: EngineConfig = field(default_factory=SingleConfig)
    optim: OptimConfig = field(default_factory=AdamWConfig)
    ranks: int = 1


@dataclass(frozen=True)
class Held:
    """Bytes on the rank with the most."""

    weights: float
    """The weights that compute, and the share that the optimizer updates if that is a copy."""
    gradients: float
    moments: float
    """State that the optimizer keeps between updates."""
    scratch: float
    """Largest temporary memory of a step: the second gradient of an embedding that is read twice, gradient messages,
    updates before they are applied."""
    gathered: float
    """Memory for gathering a complete state from the shards of all ranks."""


def held_bytes(network: NetworkConfig, sharing: Sharing, accumulates: bool = True, only_rows: bool = False) -> Held:
    """Return what training the network takes on a rank, besides activations; `accumulates`: with several
    micro-batches; `only_rows`: if only rows of entries are trained, all of which are counted as new."""
    tensors, ranks = network.tensors, sharing.ranks
    engine = resolve_engine(sharing.engine, ranks)
    sizes = {name: prod(shape) for name, shape in tensors.items()}
    whole, embedding = 4.0 * sum(sizes.values()), 4.0 * network.vocab_size * network.hidden_size
    if only_rows and not isinstance(engine, FsdpConfig):
        return _held_of_rows(network, sharing, {name: n for name, n in sizes.items() if has_row_per_entry(name)}, whole)
    moments = _most_moment_bytes(network, sharing)
    all_moments = moment_bytes(network, Sharing(optim=sharing.optim), 0)
    match engine:
        case DdpConfig() | ZeroConfig():
            own = sizes if isinstance(engine, DdpConfig) else {n: sizes[n] for n in deal_out(sizes, ranks)[0]}
            sums = whole * (1.0 if engine.reduction == "fp32" else 0.5) if ranks > 1 else 0.0
            sent = 4.0 * sum(own.values()) if isinstance(engine, ZeroConfig) and ranks > 1 else 0.0
            scratch = max(embedding, sums, sent, _update_bytes(network, sharing.optim, own))
            return Held(whole, whole, moments, scratch, all_moments if isinstance(engine, ZeroConfig) else 0.0)
        case FsdpConfig():
            parts = {name: part(shape, ranks, 0) for name, shape in tensors.items()}
            working = 4.0 * _at_a_time(network, sizes)
            scratch = max(embedding, _update_bytes(network, sharing.optim, parts))
            # Gradients of micro-batches are accumulated unsharded, so that a step sends one sum.
            gradients = whole if accumulates and ranks > 1 else 4.0 * sum(parts.values()) + working
            return Held(4.0 * sum(parts.values()) + working, gradients, moments, scratch, whole + all_moments)
        case DeepSpeedConfig():
            gradients = whole if engine.stage == 1 else whole / ranks
            scratch = max(embedding, min(4 * _DEEPSPEED_BUCKET, whole))
            computing = min(4 * _DEEPSPEED_LIVE, whole) if engine.stage == 3 else whole
            return Held(computing + whole / ranks, gradients, moments, scratch, whole + all_moments)
        case _:
            return Held(whole, whole, moments, max(embedding, _update_bytes(network, sharing.optim, sizes)), 0.0)


def _held_of_rows(network: NetworkConfig, sharing: Sharing, sizes: Mapping[str, int], whole: float) -> Held:
    """As `held_bytes`, where of all tensors, of `whole` bytes, only those of these sizes get gradients and moments."""
    trained = 4.0 * sum(sizes.values())
    moments = sum(4.0 * moments_of(sharing.optim, n, len(network.tensors[n])) * size for n, size in sizes.items())
    # The optimizer has copies of the rows and their gradients. A checkpoint has moments of 0 for all other tensors.
    return Held(whole, trained, moments, 2 * trained, moment_bytes(network, Sharing(optim=sharing.optim), 0))


def state_bytes(network: NetworkConfig, optim: OptimConfig) -> float:
    """Return the bytes of weights and moments of the entire network: those of a checkpoint without averages."""
    return 4.0 * network.parameters + moment_bytes(network, Sharing(optim=optim), 0)


def moment_bytes(network: NetworkConfig, sharing: Sharing, rank: int) -> float:
    """Return the bytes that a rank's optimizer keeps between updates, without its update counts."""
    tensors, ranks, engine = network.tensors, sharing.ranks, resolve_engine(sharing.engine, sharing.ranks)
    each = {name: 4.0 * moments_of(sharing.optim, name, len(shape)) for name, shape in tensors.items()}
    sizes = {name: prod(shape) for name, shape in tensors.items()}
    if isinstance(engine, ZeroConfig):
        return sum(each[name] * sizes[name] for name in deal_out(sizes, ranks)[rank])
    if isinstance(engine, FsdpConfig):
        return sum(each[name] * part(shape, ranks, rank) for name, shape in tensors.items())
    return sum(each[name] * size for name, size in sizes.items()) / (ranks if engine.kind == "deepspeed" else 1)


def _most_moment_bytes(network: NetworkConfig, sharing: Sharing) -> float:
    """Return `moment_bytes` of the rank with the most, without computing it for every one of thousands."""
    if not isinstance(resolve_engine(sharing.engine, sharing.ranks), ZeroConfig):
        return moment_bytes(network, sharing, 0)  # no rank has more rows of a tensor than the first
    tensors = network.tensors
    sizes = {name: prod(shape) for name, shape in tensors.items()}
    moments = {n: 4.0 * moments_of(sharing.optim, n, len(tensors[n])) * size for n, size in sizes.items()}
    return max(sum(moments[name] for name in names) for names in deal_out(sizes, sharing.ranks))


def _update_bytes(network: NetworkConfig, optim: OptimConfig, own: Mapping[str, int]) -> float:
    """Return the temporary bytes of an update by an optimizer that updates `own` elements of each tensor."""
    if isinstance(optim, LambConfig):
        return 4.0 * sum(own.values())
    if isinstance(optim, MuonConfig):
        # The direction of one tensor; for one of its matrices at a time, two powers and a product.
        return max(4.0 * (prod(shape) + 3 * prod(matrix)) for shape, matrix in _matrices(network))
    return 0.0


def _matrices(network: NetworkConfig) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Yield the shapes of each tensor that Muon updates, and of the matrices in it."""
    for name, shape in network.tensors.items():
        if matrices := matrices_of(name, shape, network.fused):
            yield shape, matrices[0]


def _at_a_time(network: NetworkConfig, sizes: Mapping[str, int]) -> int:
    """Return the number of weights that are gathered at a time, if layers are gathered when they compute: those outside
    the layers, one layer, and the next one in transit."""
    layers = sum(size for name, size in sizes.items() if ".layers." in name)
    return sum(sizes.values()) - layers + 2 * layers // network.num_hidden_layers
