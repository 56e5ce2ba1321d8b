"""Forecasts the time of a training step on any number of devices from four parts (docs/scaling.md).

    step = max(compute + exposed, loader) · (1 + wait)

compute     micro-batches · (products / speed + values / bandwidth + launches), and the optimizer's update
exposed     the part of the gradient all-reduce that the last backward pass does not hide
loader      drawing the rank's sequences, which overlaps with the previous step
wait        waiting for the slowest rank: with n ranks of the same deviation, it is about sqrt(2 ln n) deviations slower

Launches: starting operations takes seconds that are independent of their size, and dominates the steps of small
networks. Their constants are for one thread on an EPYC with AVX-512: passes and updates of networks 32 wide, with 1 to
12 layers and 1 to 32 lengths, in processor seconds, the fastest of 25. What a GPU reaches is in `measured.toml`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bertwright.estimate.devices import REACHED
from bertwright.estimate.machine import Machine
from bertwright.estimate.measured_gpu import measured_gpu
from bertwright.estimate.measurement_cache import Measured
from bertwright.estimate.work import PhaseWork
from bertwright.model.config import NetworkConfig, has_row_per_entry
from bertwright.model.flops import STEP, forward_flops, step_flops
from bertwright.optim.by_name import matrices_of
from bertwright.optim.config import MuonConfig, OptimConfig
from bertwright.recipe import Recipe
from bertwright.train.config import TrainConfig
from bertwright.train.engine.config import resolve_engine
from bertwright.train.memory.kept_numbers import Kernels, kept_numbers
from bertwright.train.memory.rank_memory import share_of
from bertwright.train.precision.config import Bf16Config

_TIMES_MOVED = 4
"""How often a CPU moves each value kept for the backward pass: written, read, and read again with its gradient."""
_READ_BYTES, _GRADIENT_BYTES = 8, 16
"""Bytes per parameter that a pass moves on a CPU: the weight twice, and its gradient, computed and accumulated. A GPU
overlaps this with its products."""
_MESSAGE = 15e-6
"""Latency of a message in seconds, independent of its size; added again for each doubling of the ranks."""
_BUCKET = 25e6
_DEVIATION = 0.01
"""Relative standard deviation of a rank's step time."""
_DRAWN = 60_000.0
"""Sequences of 128 tokens that a core draws per second (docs/results.md: 77,000 whole words, 169,000 tokens)."""
_REDUCED = {"fp32": 4, "bf16": 2, "fp16": 2}


@dataclass(frozen=True)
class StepTime:
    """Seconds of one step."""

    compute: float
    """Forward and backward passes."""
    update: float
    """The optimizer."""
    reduction: float
    """The complete gradient all-reduce."""
    exposed: float
    """The part of the reduction that no backward pass hides."""
    loader: float
    """Drawing the batch, which overlaps with the previous step."""
    wait: float
    """Waiting for the slowest rank, as a share of the step."""

    @property
    def seconds(self) -> float:
        """Seconds of the entire step."""
        return max(self.compute + self.update + self.exposed, self.loader) * (1 + self.wait)


def step_time(
    recipe: Recipe, work: PhaseWork, machine: Machine, padded: bool, measured: Measured | None = None
) -> StepTime:
    """The time of a step of the phase at its full batch size; `measured` values replace those of the model."""
    network, train, ranks = recipe.network(), recipe.train, machine.ranks
    micro = work.micro_batches(ranks)
    sequences = share_of(work.phase, ranks) / micro
    each = measured.micro_batch if measured else micro_batch_seconds(network, train, work, machine, sequences, padded)
    update = measured.update if measured else update_seconds(network, train, recipe.optim, machine, work.only_rows)
    trained = row_parameters(network) if _only_row_gradients(train, work, machine) else network.parameters
    reduction = reduction_seconds(trained, train, machine)
    # Two of the three parts of a pass are the backward one, and only the last micro-batch overlaps with the sum.
    exposed = exposed_seconds(reduction, each * 2 / STEP)
    drawn = share_of(work.phase, ranks) * work.phase.length / 128
    loader = drawn / (_DRAWN * max(1.0, machine.cores / machine.each / 2))
    return StepTime(micro * each, update, reduction, exposed, loader, straggler_share(ranks))


def micro_batch_seconds(
    network: NetworkConfig, train: TrainConfig, work: PhaseWork, machine: Machine, sequences: float, padded: bool
) -> float:
    """Seconds of a forward and a backward pass over `sequences` sequences on one device."""
    device = machine.device
    # Of a fixed shape: rows of one sequence are padded to the full length.
    eager = train.graph.kind in ("auto", "eager")  # `as_expected` says what auto becomes
    full = not eager and not work.phase.packing and not work.phase.micro_tokens
    passes = STEP + train.checkpoint_activations
    if work.phase.micro_batch:  # otherwise the vectors of all sequences are computed together
        passes += train.objective.compares_sequences
    row = float(work.phase.length) if full else work.row(sequences)
    only_rows = _only_row_gradients(train, work, machine)
    forward, step = _sequence_flops(network, work, full, row if padded else 0.0, only_rows)
    products = (step + (passes - STEP) * forward) * sequences / device.speed(train.precision.kind)
    low = isinstance(train.precision, Bf16Config) and train.precision.weights == "bf16"
    size = 2 if low or (device.gpu and train.precision.kind not in ("fp32", "tf32")) else 4
    kept = kept_numbers(network, round(row), padded, Kernels(fused=device.gpu))
    numbers = kept * network.num_hidden_layers * work.mean_length
    # The logits of all entries for each masked token, and their gradients; a classifier has only a few.
    logits = 0 if not network.predicts_tokens else 2 * work.predictions * network.vocab_size
    times = measured_gpu().moves if device.gpu else _TIMES_MOVED
    moved = (numbers + logits) * sequences * size * times * passes / STEP
    trained = row_parameters(network) if only_rows else network.parameters
    moved += 0 if device.gpu else _READ_BYTES * network.parameters + _GRADIENT_BYTES * trained
    values = moved / (REACHED * device.bandwidth)
    launches = pass_launch_seconds(network, work, sequences, padded, device.gpu)
    launches *= 1.0 if eager else _COMPILED
    # A GPU computes while further operations are launched; work shorter than its launches is hidden behind them.
    return max(products + values, launches) if device.gpu else products + values + launches


def row_parameters(network: NetworkConfig) -> int:
    """Parameters of the tensors with a row for each entry: how many entries are new is known only when training
    starts."""
    return sum(math.prod(shape) for name, shape in network.tensors.items() if has_row_per_entry(name))


def _only_row_gradients(train: TrainConfig, work: PhaseWork, machine: Machine) -> bool:
    """Whether no other weights get gradients; those of `fsdp` do, because ranks exchange those of entire layers."""
    return work.only_rows and resolve_engine(train.engine, machine.ranks).kind != "fsdp"


def _sequence_flops(
    network: NetworkConfig, work: PhaseWork, full: bool, row: float, only_rows: bool
) -> tuple[float, float]:
    """Operations per sequence, of a forward pass and of that with its backward pass; `row`: the length that rows are
    padded to for attention, 0 if they are not."""
    mean, deviation, longest = work.mean_length, work.examples.deviation, work.phase.length
    # Two sequences reproduce the mean length and the mean squared length of all sequences.
    two = [longest] * 2 if full else [max(1, round(mean - deviation)), round(mean + deviation)]
    lengths, predictions = np.array(two), 2 * round(work.predictions)
    forward = forward_flops(network, lengths, predictions) / 2
    step = step_flops(network, lengths, predictions, only_rows) / 2
    if row and not full:
        # The kernel multiplies all pairs of the padded rectangle; windowed layers skip most of it and are not padded.
        unwindowed = sum(window is None for window in network.windows)
        more = 4 * network.hidden_size * unwindowed * max(0.0, row**2 - work.examples.mean_square)
        forward, step = forward + more, step + STEP * more
    return forward, step


def reduction_seconds(parameters: int, train: TrainConfig, machine: Machine) -> float:
    """Seconds of an all-reduce of the gradients: a ring in each machine, one across machines for each part."""
    if machine.ranks == 1:
        return 0.0
    engine = resolve_engine(train.engine, machine.ranks)
    # fsdp also gathers the weights for both passes, which adds half as much traffic.
    gathered = 1.5 if engine.kind == "fsdp" else 1.0
    size = gathered * parameters * _REDUCED[getattr(engine, "reduction", "fp32")]
    return all_reduce_seconds(size, machine.each, machine.nodes, machine.device.link, machine.network)


def all_reduce_seconds(size: float, each: int, nodes: int, link: float, network: float) -> float:
    """Seconds of an all-reduce of `size` bytes: `nodes` machines of `each` devices, `link` and `network` in bytes/s.

    Within a machine each device sums its part of the gradient and finally sends it to the others; in between, equal
    parts are summed across machines. A ring of n sends 2(n - 1)/n of its bytes.
    """
    inside = 2 * (each - 1) / each * size / (REACHED * link)
    between = 2 * (nodes - 1) / nodes * size / each / (REACHED * network)
    messages = 2 * _MESSAGE * math.log2(each * nodes) * math.sqrt(max(1.0, size / _BUCKET))
    return inside + between + messages


def exposed_seconds(reduction: float, backward: float) -> float:
    """Seconds of the all-reduce that remain after the last backward pass, with which it overlaps."""
    # The gradients of the last bucket are complete only at the end of the backward pass.
    return max(reduction - backward, 0.1 * reduction)


def straggler_share(ranks: int) -> float:
    """How much longer than the mean the slowest of `ranks` ranks takes, as a share."""
    return _DEVIATION * math.sqrt(2 * math.log(ranks)) if ranks > 1 else 0.0


_BYTES = 44
"""Bytes per parameter that an update moves: weight, gradient, moments and scratch, read and written."""
_ITERATIONS = 5
"""Newton-Schulz iterations of an update of Muon (`optim/muon.py`, which needs torch)."""
_ASPECT = 1.5
"""Columns per row of a matrix above which a CPU iterates on its Gram matrix (`optim/muon.py`)."""
_MATRIX = 0.25e-3
"""Seconds spent on starting the iterations of one matrix on a CPU, measured on matrices of 32 x 32."""


def update_seconds(
    network: NetworkConfig, train: TrainConfig, optim: OptimConfig, machine: Machine, only_rows: bool = False
) -> float:
    """Seconds of an update on each device; `only_rows`: of the rows of entries."""
    engine, device = resolve_engine(train.engine, machine.ranks).kind, machine.device
    parts = machine.ranks if engine in ("zero", "fsdp", "deepspeed") else 1
    parameters = row_parameters(network) if only_rows else network.parameters
    seconds = _BYTES * parameters / parts / (REACHED * device.bandwidth)
    seconds += step_launch_seconds(network, device.gpu, only_rows)
    if isinstance(optim, MuonConfig) and not only_rows:
        # `zero` gives each matrix to one rank; with the other engines every rank computes all of them.
        shared = machine.ranks if engine == "zero" else 1
        products = muon_flops(network, device.gpu) / device.speed("bf16" if device.gpu else "fp32")
        launches = 0.0 if device.gpu else _MATRIX * len(_matrices(network))
        seconds += (products + launches) / shared
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


_LAYER, _LENGTH, _PASS = 0.9e-3, 0.15e-3, 2.5e-3
"""Per layer; per distinct sequence length in the attention of each layer; and per pass for embeddings, heads and
losses. All include forward and backward."""
_TENSOR, _STEP = 20e-6, 2e-3
"""Per tensor, for its norm, clipping and update; and per step, for receiving its batch and counts, setting the learning
rate and adding to a row of metrics."""
_COMPILED = 0.3
"""Share of a pass's launches that remains if the network is compiled."""


def pass_launch_seconds(network: NetworkConfig, work: PhaseWork, sequences: float, padded: bool, gpu: bool) -> float:
    """Seconds spent on starting an uncompiled forward and backward pass over `sequences` sequences."""
    if gpu:
        return network.num_hidden_layers * measured_gpu().layer_seconds + measured_gpu().pass_seconds
    lengths = 1.0 if padded else distinct_lengths(sequences, work.mean_length, work.examples.longest)
    return network.num_hidden_layers * (_LAYER + lengths * _LENGTH) + _PASS


def step_launch_seconds(network: NetworkConfig, gpu: bool, only_rows: bool = False) -> float:
    """Seconds spent on starting the rest of a step; on a GPU one call is for many tensors."""
    tensors = sum(has_row_per_entry(name) or not only_rows for name in network.tensors)
    return measured_gpu().step_seconds if gpu else tensors * _TENSOR + _STEP


def distinct_lengths(sequences: float, mean: float, longest: int) -> float:
    """Expected number of distinct lengths among `sequences`: some at full length, the rest uniform over shorter
    lengths."""
    # If a share s has uniform lengths and the rest the longest one, the mean is longest * (1 - s / 2).
    shorter = sequences * min(1.0, 2 - 2 * mean / longest)
    # n draws from m values give m * (1 - (1 - 1/m)^n) distinct ones on average.
    return 1 + longest * (1 - math.pow(1 - 1 / longest, shorter))
