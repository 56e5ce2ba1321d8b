"""Estimates the memory that training takes on a rank, right within a factor of two, and for layers within 15 %.

Weights, gradients, moments and scratch memory as the engine distributes them (`held_tensors`: for a single process with
AdamW, 16 bytes per parameter plus the gradient of the embedding); 2 more bytes per parameter with a copy in 16 bits,
which autocast makes too, and 12 more with a copy that checkpoints are written from; 0.37 GB for torch. What a
forward pass keeps is estimated in `kept_numbers`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import inf
from statistics import NormalDist
from typing import NamedTuple

from bertwright.core.numbers import size_of
from bertwright.examples.sequences import Sequences
from bertwright.model.config import Kernel, NetworkConfig, kernel_for
from bertwright.optim.config import OptimConfig
from bertwright.train.averaging.config import AveragingConfig, EmaConfig, LastConfig
from bertwright.train.config import TrainConfig
from bertwright.train.graph.packages import graph_of
from bertwright.train.memory.held_tensors import Held, Sharing, held_bytes, state_bytes
from bertwright.train.memory.kept_numbers import OF_A_CPU, Kernels, Pass, pass_numbers
from bertwright.train.precision.config import Bf16Config
from bertwright.train.settings.phase_config import PhaseConfig

PROGRAM_BYTES = 0.37e9
"""Bytes for torch and its libraries: 0.34 GB when all are loaded, the rest of their files when they first compute."""
FILLED = 0.8
"""Share of the limit that a fitted micro-batch may fill: the rules may be slightly wrong."""
_STEPS = 1000
"""Stands for an unknown number of steps."""


@dataclass(frozen=True)
class Computing:
    """How a rank computes, as far as its memory depends on it."""

    sharing: Sharing = field(default_factory=Sharing)
    """The engine, the optimizer and the number of ranks that share the state."""
    padded: bool = False
    """Whether attention uses a padded rectangle."""
    recompute: bool = False
    """Whether activations are checkpointed."""
    low_weights: bool = False
    """Whether a bfloat16 copy of the weights computes."""
    averages: int = 0
    """Copies of the weights that an average keeps on the training device."""
    shard_above: float = inf
    """Bytes of weights and moments above which each rank gathers and writes only its own tensors of a checkpoint."""
    full_rows: bool = False
    """Whether every row is padded to the length of the phase, as compiled networks need it."""
    saved: int = 0
    """Bytes per parameter of the copy that a checkpoint is written from, on the training device."""
    kernels: Kernels = OF_A_CPU

    @property
    def copies(self) -> int:
        """Bytes per parameter of the copies of the weights: in 16 bits, and those of an average."""
        # Autocast keeps its copies until the backward pass has read them.
        return 2 * (self.low_weights or self.kernels.autocast) + 4 * self.averages


def computing_of(config: TrainConfig, optim: OptimConfig, ranks: int, gpu: bool) -> Computing:
    """Return how each of `ranks` ranks computes, on a GPU or a CPU."""
    sharing = Sharing(config.engine, optim, ranks)
    kernel = expected_kernel(config, gpu)
    low = isinstance(config.precision, Bf16Config) and config.precision.weights == "bf16"
    # `last` keeps its copies in host memory.
    averages = 0 if gpu and isinstance(config.averaging, LastConfig) else averaged_copies(config.averaging)
    # On a GPU, the copy for checkpoints is in host memory.
    copied = not gpu and config.saves_beside(gpu)
    saved = 12 + 4 * averaged_copies(config.averaging) if copied else 0
    # `sequences` computes attention step by step, and so does what is exported to ONNX Runtime.
    graph = graph_of(config, gpu).kind
    fused = gpu and kernel != "sequences" and graph != "ortmodule"
    narrow = config.precision.kind in ("fp16", "bf16") or (gpu and config.precision.kind == "auto")
    # With precision auto, a GPU that has no bfloat16 takes float16, whose stream is float32.
    half_stream = config.precision.kind == "bf16" and not low
    return Computing(
        sharing,
        kernel == "padded",
        config.checkpoint_activations,
        low,
        averages,
        1e9 * config.shard_above_gb,
        config.graph.kind not in ("auto", "eager"),
        saved,
        Kernels(fused, narrow and not low, half_stream, weighed=narrow and kernel == "sequences"),
    )


def writes_shards(config: TrainConfig, network: NetworkConfig, optim: OptimConfig, ranks: int) -> bool:
    """Whether each of `ranks` ranks writes its own tensors of a checkpoint."""
    return ranks > 1 and state_bytes(network, optim) > config.shard_above_gb * 1e9


def averaged_copies(averaging: AveragingConfig) -> int:
    """Return the number of copies of the weights that an average keeps."""
    return averaging.count if isinstance(averaging, LastConfig) else int(isinstance(averaging, EmaConfig))


def training_bytes(
    network: NetworkConfig, phase: PhaseConfig, computing: Computing, activations: float | None = None
) -> float:
    """Return about how many bytes training a phase takes on each rank; with `micro_batch` auto, those of the smallest
    size.

    `activations`: bytes kept by a forward pass, if known better than from the longest possible sequences.
    """
    # Without a micro-batch, a rank processes its entire share of the batch at once.
    share = share_of(phase, computing.sharing.ranks)
    sequences = 1 if phase.micro_batch == "auto" else min(phase.micro_batch or share, share)
    held = held_bytes(network, computing.sharing, sequences < share, phase.trains == "new-rows")
    # The state for a checkpoint is gathered between two steps, when nothing is computed; in shards, one tensor at a
    # time.
    sharded = state_bytes(network, computing.sharing.optim) > computing.shard_above
    gathered = held.gathered / computing.sharing.ranks if sharded else held.gathered
    if activations is None:
        activations = sequences_bytes(network, phase, computing, sequences)
    return _kept_bytes(network, computing, held) + max(held.scratch + activations, gathered)


def fitting_sequences(
    network: NetworkConfig, phase: PhaseConfig, computing: Computing, limit: float, each: int = 1
) -> int:
    """Return the largest micro-batch, in examples of at most `each` sequences (with packing, rows), whose training
    fills `FILLED` of `limit` bytes.

    At least 1, and at most a rank's share of the batch.
    """
    room = FILLED * limit - fixed_bytes(network, computing)
    examples = int(room // sequences_bytes(network, phase, computing, each))
    return max(1, min(examples, share_of(phase, computing.sharing.ranks)))


def share_of(phase: PhaseConfig, ranks: int) -> int:
    """Return the maximum number of sequences that a rank processes per step; at least 1."""
    return max(1, -(-phase.batch // ranks))


def fixed_bytes(network: NetworkConfig, computing: Computing) -> float:
    """Return about how many bytes training takes on a rank regardless of its input."""
    held = held_bytes(network, computing.sharing)
    return _kept_bytes(network, computing, held) + held.scratch


def _kept_bytes(network: NetworkConfig, computing: Computing, held: Held) -> float:
    each = computing.copies + computing.saved
    return PROGRAM_BYTES + held.weights + held.gradients + held.moments + each * network.parameters


def sequences_bytes(network: NetworkConfig, phase: PhaseConfig, computing: Computing, sequences: int) -> float:
    """Return the maximum bytes that a forward pass of `sequences` sequences (with packing, rows) keeps for its backward
    pass."""
    return pass_bytes(network, phase, computing, Pass.full(sequences, phase.length, phase.micro_tokens))


def pass_bytes(network: NetworkConfig, phase: PhaseConfig, computing: Computing, read: Pass) -> float:
    """Return about how many bytes a forward pass keeps for its backward pass."""
    numbers = pass_numbers(network, phase, read, computing.padded, computing.recompute, computing.kernels)
    return (2 if computing.low_weights else 4) * numbers


class OverLimit(NamedTuple):
    """A phase whose smallest micro-batch takes more than the limit."""

    text: str
    """What is wrong, as a sentence."""
    remedy: str
    """What to do, as a sentence."""
    times: float
    """The memory that it takes, as a multiple of the limit."""


def over_limit(train: TrainConfig, network: NetworkConfig, computing: Computing) -> Iterator[OverLimit]:
    """Yield each phase of `micro_batch` auto that does not fit into the limit of the recipe, if there is one."""
    limit = 1e9 * train.memory_limit_gb
    for number, phase in enumerate(train.phases):
        if not limit or phase.micro_batch != "auto" or (least := training_bytes(network, phase, computing)) <= limit:
            continue
        key = f"train.phases.{number}.micro_batch"
        text = f"{key} = auto takes about {size_of(least)} even with one sequence at a time, but"
        yield OverLimit(
            f"{text} train.memory_limit_gb = {train.memory_limit_gb:g}.",
            f"Raise train.memory_limit_gb, lower train.phases.{number}.length, or choose a smaller model.size.",
            least / limit,
        )


def select_kernel(config: TrainConfig, device_type: str) -> Kernel:
    """Return the recipe's kernel; for auto, the one to use without a measurement: the one that suits the device (`cpu`,
    `cuda`), or `padded` if the graph needs fixed shapes."""
    if config.attention != "auto":
        return config.attention
    return kernel_for(device_type) if graph_of(config, device_type == "cuda").kind == "eager" else "padded"


def expected_kernel(config: TrainConfig, gpu: bool) -> Kernel:
    """Return the recipe's kernel; for auto, the one that training is likely to choose: on a GPU it times those that
    support it (`train.setup.choose_attention`), and on one that has bf16 the fastest need no padding. Elsewhere, or if
    the precision is not known yet, `padded`, which takes the most memory."""
    unpadded = gpu and config.attention == "auto" and config.precision.kind == "bf16"
    return "triton" if unpadded else select_kernel(config, "cuda" if gpu else "cpu")


def micro_batches(phase: PhaseConfig, ranks: int, mean_length: float) -> int:
    """Return the forward passes per step on each of `ranks` ranks at full batch size."""
    share, size = share_of(phase, ranks), phase.micro_batching
    if size.micro_tokens:
        return max(1, math.ceil(share * mean_length / size.micro_tokens))
    if size.row_tokens:  # rows of several sequences, nearly full
        return max(1, math.ceil(share * mean_length / size.row_tokens / size.micro_batch))
    return max(1, math.ceil(share / size.micro_batch))


def micro_sequences(phase: PhaseConfig, ranks: int, mean_length: float) -> int:
    """Return the mean number of sequences per forward pass."""
    return max(1, round(share_of(phase, ranks) / micro_batches(phase, ranks, mean_length)))


def largest_pass(phase: PhaseConfig, computing: Computing, examples: Sequences, steps: int | None = None) -> Pass:
    """Return the largest forward pass to be expected on a rank in `steps` steps over the examples of the phase.

    Rows are as long as the longest example: sooner or later a pass has it.
    """
    ranks, size, mean = computing.sharing.ranks, phase.micro_batching, examples.mean_length
    if computing.full_rows or size.row_tokens or size.micro_tokens:
        return _full_pass(phase, computing, examples)
    sequences, normal = float(micro_sequences(phase, ranks, mean)), NormalDist()
    if (parts := micro_batches(phase, ranks, mean)) > 1:
        # Sequences are grouped by length, so the longest of a step share one pass: the mean of the upper tail of a
        # normal distribution.
        mean += examples.deviation * normal.pdf(normal.inv_cdf(1 - 1 / parts)) * parts
    else:
        # The largest mean length of a batch over all steps.
        most = expected_maximum(max(1, steps or _STEPS))
        mean += max(0.0, most) * examples.deviation / math.sqrt(sequences)
    tokens = sequences * min(mean, float(examples.longest))
    return Pass(sequences, tokens, examples.longest, tokens * max(mean, examples.mean_square / examples.mean_length))


def _full_pass(phase: PhaseConfig, computing: Computing, examples: Sequences) -> Pass:
    """Return a pass whose size the settings determine: rows of full length, or a number of tokens."""
    rows = min(phase.micro_batching.micro_batch, share_of(phase, computing.sharing.ranks))
    if computing.full_rows:
        return Pass.full(rows, phase.length)
    full = Pass.full(0, examples.longest, phase.micro_tokens) if phase.micro_tokens else Pass.full(rows, phase.length)
    return replace(full, pairs=full.tokens * examples.mean_square / examples.mean_length)


def expected_maximum(number: float) -> float:
    """Return the expected largest of `number` normal values, in deviations above their mean (Blom 1958)."""
    return NormalDist().inv_cdf((number - 0.375) / (number + 0.25))
