"""Forecasts the time of a training step on any number of devices from four parts (docs/scaling.md).

    step = max(compute + exposed, loader) · (1 + wait)

compute     micro-batches · (products / speed + values / bandwidth + calls), and the optimizer's update
exposed     the part of the gradient all-reduce that the last backward pass does not hide
loader      drawing the rank's sequences, which overlaps with the previous step
wait        waiting for the slowest rank: with n ranks of the same deviation, it is about sqrt(2 ln n) deviations slower
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bertwright.check.work import PhaseWork
from bertwright.model.config import NetworkConfig
from bertwright.model.flops import STEP, forward_flops
from bertwright.plan.calls import compiled, pass_calls
from bertwright.plan.devices import REACHED
from bertwright.plan.kept import Measured
from bertwright.plan.machine import Machine
from bertwright.plan.update_time import update_seconds
from bertwright.recipe import Recipe
from bertwright.train.config import TrainConfig
from bertwright.train.engine.config import chosen
from bertwright.train.memory.kept_numbers import kept_numbers
from bertwright.train.memory.rank_memory import share_of
from bertwright.train.precision.config import Bf16Config

_TIMES_MOVED = 4
"""How often each value kept for the backward pass is moved: written, read, and read again with its gradient."""
_WEIGHT_BYTES = 24
"""Bytes per parameter that a pass moves on a CPU: the weight twice, its gradient computed and accumulated. A GPU
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
    update = measured.update if measured else update_seconds(network, train, recipe.optim, machine)
    reduction = reduction_seconds(network.parameters, train, machine)
    # Two of the three parts of a pass are the backward one, and only the last micro-batch overlaps with the sum.
    exposed = exposed_seconds(reduction, each * 2 / STEP)
    drawn = share_of(work.phase, ranks) * work.phase.length / 128
    loader = drawn / (_DRAWN * max(1.0, machine.cores / machine.each / 2))
    return StepTime(micro * each, update, reduction, exposed, loader, straggling(ranks))


def micro_batch_seconds(
    network: NetworkConfig, train: TrainConfig, work: PhaseWork, machine: Machine, sequences: float, padded: bool
) -> float:
    """Seconds of a forward and a backward pass over `sequences` sequences on one device."""
    device, full = machine.device, train.graph.kind != "eager"
    passes = STEP + train.checkpoint_activations
    row = float(work.phase.length) if full else work.row(sequences)
    flops = _sequence_flops(network, work, full, row if padded else 0.0)
    products = passes * sequences * flops / device.speed(train.precision.kind)
    low = isinstance(train.precision, Bf16Config) and train.precision.weights == "bf16"
    size = 2 if low or (device.gpu and train.precision.kind not in ("fp32", "tf32")) else 4
    numbers = kept_numbers(network, round(row), padded) * network.num_hidden_layers * work.mean_length
    # The logits of all entries for each masked token, and their gradients; a classifier has only a few.
    logits = 0 if not network.predicts_tokens else 2 * work.predictions * network.vocab_size
    moved = (numbers + logits) * sequences * size * _TIMES_MOVED * passes / STEP
    moved += 0 if device.gpu else _WEIGHT_BYTES * network.parameters
    values = moved / (REACHED * device.bandwidth)
    calls = pass_calls(network, work, sequences, padded, device.gpu)
    calls = compiled(calls) if full else calls
    # A GPU computes while further operations are launched; work shorter than its launches is hidden behind them.
    return max(products + values, calls) if device.gpu else products + values + calls


def _sequence_flops(network: NetworkConfig, work: PhaseWork, full: bool, row: float) -> float:
    """Forward-pass operations per sequence; `row`: the length that rows are padded to for attention, 0 if they are
    not."""
    mean, deviation, longest = work.mean_length, work.examples.deviation, work.phase.length
    # Two sequences reproduce the mean length and the mean squared length of all sequences.
    two = [longest] * 2 if full else [max(1, round(mean - deviation)), round(mean + deviation)]
    one = forward_flops(network, np.array(two), 2 * round(work.predictions)) / 2
    if row and not full:
        # The kernel multiplies all pairs of the padded rectangle; windowed layers skip most of it and are not padded.
        unwindowed = sum(window is None for window in network.windows)
        one += 4 * network.hidden_size * unwindowed * max(0.0, row**2 - work.examples.mean_square)
    return one


def reduction_seconds(parameters: int, train: TrainConfig, machine: Machine) -> float:
    """Seconds of an all-reduce of the gradients: a ring in each machine, one across machines for each part."""
    if machine.ranks == 1:
        return 0.0
    engine = chosen(train.engine, machine.ranks)
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


def straggling(ranks: int) -> float:
    """How much longer than the mean the slowest of `ranks` ranks takes, as a share."""
    return _DEVIATION * math.sqrt(2 * math.log(ranks)) if ranks > 1 else 0.0
