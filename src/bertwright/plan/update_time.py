"""Forecasts the time of an optimizer's update: moving its state, and Muon's products of matrices."""

from __future__ import annotations

from bertwright.model.config import NetworkConfig
from bertwright.optim.by_name import matrices_of
from bertwright.optim.config import MuonConfig, OptimConfig
from bertwright.plan.calls import step_calls
from bertwright.plan.devices import REACHED
from bertwright.plan.machine import Machine
from bertwright.train.config import TrainConfig
from bertwright.train.engine.config import chosen

_BYTES = 44
"""Bytes per parameter that an update moves: weight, gradient, moments and scratch, read and written."""
_ITERATIONS = 5
"""Newton-Schulz iterations of an update of Muon (`optim/orthogonal.py`, which needs torch)."""
_ASPECT = 1.5
"""Columns per row of a matrix above which a CPU iterates on its Gram matrix (`optim/orthogonal.py`)."""
_MATRIX = 0.25e-3
"""Call overhead, in seconds, of the iterations of one matrix on a CPU, measured on matrices of 32 x 32."""


def update_seconds(network: NetworkConfig, train: TrainConfig, optim: OptimConfig, machine: Machine) -> float:
    """Seconds of an update on each device."""
    engine, device = chosen(train.engine, machine.ranks).kind, machine.device
    parts = machine.ranks if engine in ("zero", "fsdp", "deepspeed") else 1
    seconds = _BYTES * network.parameters / parts / (REACHED * device.bandwidth) + step_calls(network, device.gpu)
    if isinstance(optim, MuonConfig):
        # `zero` gives each matrix to one rank; with the other engines every rank computes all of them.
        shared = machine.ranks if engine == "zero" else 1
        products = muon_flops(network, device.gpu) / device.speed("bf16" if device.gpu else "fp32")
        calls = 0.0 if device.gpu else _MATRIX * len(_matrices(network))
        seconds += (products + calls) / shared
    return seconds


def muon_flops(network: NetworkConfig, gpu: bool) -> float:
    """Operations of the products with which Muon makes the updates of all matrices of the layers orthogonal."""
    return float(sum(_flops(m, n, gpu) for m, n in map(sorted, _matrices(network))))


def _flops(m: int, n: int, gpu: bool) -> int:
    """Of one matrix [m, n], m <= n, or its transpose."""
    if n <= _ASPECT * m or gpu:
        # For each iteration: the Gram matrix, its square, and their product with the matrix.
        return _ITERATIONS * (4 * m * m * n + 2 * m**3)
    # The Gram matrix and the product with the matrix once; the square for each iteration, and for each but the first
    # the next Gram matrix, in two products, and the product of all factors.
    return 4 * m * m * n + 2 * m**3 * (_ITERATIONS + 3 * (_ITERATIONS - 1))


def _matrices(network: NetworkConfig) -> list[tuple[int, ...]]:
    """The shapes of the matrices that Muon updates one by one."""
    return [matrix for name, shape in network.tensors.items() for matrix in matrices_of(name, shape, network.fused)]
