"""How long a step of training takes on any number of devices: a model of three parts (docs/scaling.md).

    step = max(compute + exposed, loader) · (1 + wait)

compute     micro-batches · (products / speed + values / bandwidth + calls) + the optimizer's pass over its state
exposed     the sum of gradients over ranks, beyond what the last backward pass hides
loader      drawing the rank's sequences, which happens beside the step before
wait        for the slowest rank: of n with a deviation each, the slowest is about sqrt(2 ln n) of it slower
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bertwright.model.config import NetworkConfig
from bertwright.model.flops import STEP, forward_flops
from bertwright.plan.kept import Measured
from bertwright.plan.machine import Machine
from bertwright.plan.work import PhaseWork
from bertwright.train.config import TrainConfig
from bertwright.train.engine.config import chosen
from bertwright.train.pass_sizes import kept_numbers
from bertwright.train.precision.config import Bf16Config
from bertwright.train.sizes import share_of

_TIMES_MOVED = 4
"""How often each value that backward needs is moved: written, read, and read again beside its gradient."""
_GPU_CALLS, _CPU_CALLS = 150e-6, 250e-6
"""Seconds of a layer that starting its operations takes, forward and backward, whatever their sizes."""
_COMPILED = 0.3
"""Share of those that is left where the network is compiled."""
_REACHED = 0.8
"""Share of a data sheet's bandwidth that is reached."""
_OPTIMIZER_BYTES = 44
"""Bytes of a parameter that an update moves: weight, gradient, moments and scratch, read and written."""
_MESSAGE = 15e-6
"""Seconds that a message takes, however short, and once more for each doubling of the ranks."""
_BUCKET = 25e6
_DEVIATION = 0.01
"""Of the time of a rank's step."""
_DRAWN = 60_000.0
"""Sequences of 128 tokens that a core draws in a second (docs/results.md: 77,000 whole words, 169,000 tokens)."""
_REDUCED = {"fp32": 4, "bf16": 2, "fp16": 2}


@dataclass(frozen=True)
class StepTime:
    """Seconds of one step."""

    compute: float
    """Forward and backward passes."""
    update: float
    """The optimizer."""
    reduction: float
    """Of the gradients over ranks, all of it."""
    exposed: float
    """What of it nothing hides."""
    loader: float
    """Drawing the batch, beside the step before."""
    wait: float
    """For the slowest rank, as a share."""

    @property
    def seconds(self) -> float:
        """Of the whole step."""
        return max(self.compute + self.update + self.exposed, self.loader) * (1 + self.wait)


def step_time(
    network: NetworkConfig,
    train: TrainConfig,
    work: PhaseWork,
    machine: Machine,
    padded: bool,
    measured: Measured | None = None,
) -> StepTime:
    """The time of a step of the phase once its batch has its full size; what was `measured` comes before the model."""
    ranks = machine.ranks
    micro = work.micro_batches(ranks)
    sequences = share_of(work.phase, ranks) / micro
    each = measured.micro_batch if measured else micro_batch_seconds(network, train, work, machine, sequences, padded)
    parts = ranks if chosen(train.engine, ranks).kind in ("zero", "fsdp", "deepspeed") else 1
    update = (
        measured.update
        if measured
        else _OPTIMIZER_BYTES * network.parameters / parts / (_REACHED * machine.device.bandwidth)
    )
    reduction = reduction_seconds(network.parameters, train, machine)
    exposed = exposed_seconds(reduction, each * 2 / STEP)
    drawn = share_of(work.phase, ranks) * work.phase.length / 128
    loader = drawn / (_DRAWN * max(1.0, machine.cores / machine.each / 2))
    return StepTime(micro * each, update, reduction, exposed, loader, straggling(ranks))


def micro_batch_seconds(
    network: NetworkConfig, train: TrainConfig, work: PhaseWork, machine: Machine, sequences: float, padded: bool
) -> float:
    """Seconds of a forward and a backward pass over so many sequences on one device."""
    device, phase = machine.device, work.phase
    tokens = sequences * work.mean_length
    full = train.graph.kind != "eager"
    length = phase.length if full else round(work.mean_length)
    one = forward_flops(network, np.array([length]), round(work.predictions))
    passes = STEP + train.checkpoint_activations
    low = isinstance(train.precision, Bf16Config) and train.precision.weights == "bf16"
    size = 2 if low or (device.gpu and train.precision.kind not in ("fp32", "tf32")) else 4
    moved = kept_numbers(network, phase.length, padded) * network.num_hidden_layers * tokens * size * _TIMES_MOVED
    calls = network.num_hidden_layers * (_GPU_CALLS if device.gpu else _CPU_CALLS) * (_COMPILED if full else 1.0)
    products = passes * one * sequences / device.speed(train.precision.kind)
    values = moved * passes / STEP / (_REACHED * device.bandwidth)
    # A GPU computes while further operations are started; what is smaller than their start is hidden behind it.
    return max(products + values, calls) if device.gpu else products + values + calls


def reduction_seconds(parameters: int, train: TrainConfig, machine: Machine) -> float:
    """Seconds of a sum of all gradients over the ranks: a ring in each machine, and one over machines for each part."""
    if machine.ranks == 1:
        return 0.0
    engine = chosen(train.engine, machine.ranks)
    # fsdp gathers the weights for both passes, besides: half as much again.
    gathered = 1.5 if engine.kind == "fsdp" else 1.0
    size = gathered * parameters * _REDUCED[getattr(engine, "reduction", "fp32")]
    return all_reduce_seconds(size, machine.each, machine.nodes, machine.device.link, machine.network)


def all_reduce_seconds(size: float, each: int, nodes: int, link: float, network: float) -> float:
    """Seconds of a sum of `size` bytes over `nodes` machines of `each` devices, `link` and `network` in bytes a second.

    In a machine each device sums its part of the gradient and, in the end, sends it to the others; in between the same
    parts are summed over machines. A ring of n sends 2(n - 1)/n of its bytes.
    """
    inside = 2 * (each - 1) / each * size / (_REACHED * link)
    between = 2 * (nodes - 1) / nodes * size / each / (_REACHED * network)
    messages = 2 * _MESSAGE * math.log2(each * nodes) * math.sqrt(max(1.0, size / _BUCKET))
    return inside + between + messages


def exposed_seconds(reduction: float, backward: float) -> float:
    """What of a sum of gradients is left when the last backward pass, beside which it runs, is over."""
    # The last bucket has its gradients only then.
    return max(reduction - backward, 0.1 * reduction)


def straggling(ranks: int) -> float:
    """How much longer than the mean the slowest of so many ranks takes, as a share."""
    return _DEVIATION * math.sqrt(2 * math.log(ranks)) if ranks > 1 else 0.0
