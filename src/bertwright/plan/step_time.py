"""How long a step of training takes on any number of devices: a model of three parts (docs/scaling.md).

    step = max(compute + exposed, loader) · (1 + wait)

compute     micro-batches · (products / speed + values / bandwidth + calls) + the optimizer's pass over its state, and
            what is done once a step
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
from bertwright.plan.calls import compiled, pass_calls, step_calls
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
_WEIGHT_BYTES = 24
"""Bytes of a parameter that a pass moves on a processor: the weight twice, its gradient made and added to. A GPU does
that beside its products."""
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
    state = _OPTIMIZER_BYTES * network.parameters / parts / (_REACHED * machine.device.bandwidth)
    update = measured.update if measured else state + step_calls(network, machine.device.gpu)
    reduction = reduction_seconds(network.parameters, train, machine)
    exposed = exposed_seconds(reduction, each * 2 / STEP)
    drawn = share_of(work.phase, ranks) * work.phase.length / 128
    loader = drawn / (_DRAWN * max(1.0, machine.cores / machine.each / 2))
    return StepTime(micro * each, update, reduction, exposed, loader, straggling(ranks))


def micro_batch_seconds(
    network: NetworkConfig, train: TrainConfig, work: PhaseWork, machine: Machine, sequences: float, padded: bool
) -> float:
    """Seconds of a forward and a backward pass over so many sequences on one device."""
    device, full = machine.device, train.graph.kind != "eager"
    passes = STEP + train.checkpoint_activations
    products = passes * sequences * _sequence_flops(network, work, full, padded) / device.speed(train.precision.kind)
    low = isinstance(train.precision, Bf16Config) and train.precision.weights == "bf16"
    size = 2 if low or (device.gpu and train.precision.kind not in ("fp32", "tf32")) else 4
    numbers = kept_numbers(network, work.phase.length, padded) * network.num_hidden_layers * work.mean_length
    logits = 0 if network.labels else 2 * work.predictions * network.vocab_size
    moved = (numbers + logits) * sequences * size * _TIMES_MOVED * passes / STEP
    moved += 0 if device.gpu else _WEIGHT_BYTES * network.parameters
    values = moved / (_REACHED * device.bandwidth)
    calls = pass_calls(network, work, sequences, padded, device.gpu)
    calls = compiled(calls) if full else calls
    # A GPU computes while further operations are started; what is smaller than their start is hidden behind it.
    return max(products + values, calls) if device.gpu else products + values + calls


def _sequence_flops(network: NetworkConfig, work: PhaseWork, full: bool, padded: bool) -> float:
    """Operations of a forward pass for each of its sequences."""
    mean, deviation, longest = work.mean_length, work.deviation, work.phase.length
    # Two sequences have the mean and, in their pairs of tokens, the mean square of all.
    two = [longest] * 2 if full else [max(1, round(mean - deviation)), round(mean + deviation)]
    one = forward_flops(network, np.array(two), 2 * round(work.predictions)) / 2
    if padded and not full:
        # The kernel multiplies the pairs of a rectangle; a window hides most of one, and is not padded to it.
        unwindowed = sum(window is None for window in network.windows)
        one += 4 * network.hidden_size * unwindowed * (longest**2 - mean**2 - deviation**2)
    return one


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
