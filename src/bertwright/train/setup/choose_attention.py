"""Resolves `train.attention = auto` on a GPU at a start of training, the same on all ranks.

Which kernel is the fastest depends on the GPU, the network, the lengths, and the versions of torch and Triton. So every
kernel that supports this training is timed on the GPU itself, for about a second. The outcome may differ from one
measurement to the next, so a resumed run keeps that of its last start. On a CPU nothing is timed.

Names carry shapes: T tokens, A heads, D head width.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bertwright.core.errors import MissingExtraError
from bertwright.core.log import Log
from bertwright.core.numbers import step_duration
from bertwright.examples.batch import MicroBatch, split
from bertwright.examples.padding import in_rows
from bertwright.model.attention.kernel import bind
from bertwright.model.batch import PackedBatch, packed
from bertwright.model.config import Kernel, NetworkConfig
from bertwright.train.checkpoints.checkpoint import newest_state
from bertwright.train.graph.config import CompiledConfig
from bertwright.train.ranks.agreement import text_of
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.setup.job import TrainJob
from bertwright.train.setup.training_environment import is_deterministic
from bertwright.train.state import State
from bertwright.transfer.parts import CHECKPOINTS

Timer = Callable[[Callable[[], object]], float]
"""Returns the seconds that a call takes, as the mean of `CALLS` calls."""
CALLS = 5
"""Calls that are timed together: a GPU is then busy while the host launches the next."""
_ROUNDS = 7
"""Number of times that each kernel is timed at most, in turn with the others."""
_SECONDS = 1.0
"""Seconds of timed calls after which no round begins."""
_NUMBERS = 2**25
"""Numbers in each of queries, keys and values at most: enough work for a GPU, in little memory."""
_MARGIN = 1.1
"""`padded` must be so many times as fast as the others: the time to lay out a batch, and the memory of its rectangle
and mask, are not in the time of a layer."""
_KERNELS: tuple[Kernel, ...] = ("varlen", "triton", "padded")
"""The kernels for GPUs; the first that supports a training is taken without a measurement if it is deterministic."""
_LOW = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Timed(NamedTuple):
    """What was measured of the kernels."""

    seconds: dict[Kernel, float]
    """Seconds of a forward and backward pass of a layer, as the mean over all layers, by kernel."""
    failed: dict[Kernel, str]
    """Why other kernels could not be timed."""


def resolve_attention(job: TrainJob, device: torch.device, ranks: Ranks, log: Log) -> TrainJob:
    """Return the job with a kernel in place of `auto` on a GPU, and log which and why; on a CPU the job itself. All
    ranks must call this together, after the precision is resolved."""
    if device.type == "cpu" or job.config.attention != "auto":
        return job
    # A kernel must support the GPUs and installations of all ranks.
    unsupported = ranks.any_of(*(bool(refusal(kernel, job, device)) for kernel in _KERNELS))
    kernels = [kernel for kernel, refused in zip(_KERNELS, unsupported, strict=True) if not refused]
    text = ""
    if ranks.first:
        with ranks.busy():
            kernel, reason = _resolve(job, kernels, device, ranks.world)
        log.say(f"train: attention kernel {kernel}: {reason} (train.attention can name one)")
        text = json.dumps([kernel, reason])
    kernel, reason = json.loads(text_of(ranks, text))
    return replace(
        job,
        config=job.config.model_copy(update={"attention": kernel}),
        choices={**job.choices, "attention_reason": reason},
    )


def refusal(kernel: Kernel, job: TrainJob, device: torch.device) -> str:
    """Return why a kernel cannot compute the attention of a training on a GPU, or is not installed; "" if it can."""
    try:
        if kernel == "varlen":
            from bertwright.model.attention import varlen

            return varlen.refusal(device, job.config.precision.kind in _LOW, job.network)
        if kernel == "triton":
            from bertwright.model.attention import triton

            return triton.refusal(device, job.network)
    except MissingExtraError as error:
        return str(error)
    return ""


def _resolve(job: TrainJob, kernels: Sequence[Kernel], device: torch.device, world: int) -> tuple[Kernel, str]:
    state = newest_state(job.out / CHECKPOINTS) or State()
    if state.sessions and (kept := _kept(state.sessions[-1], kernels)):
        return kept, "as at the last start"
    if len(kernels) == 1:
        return kernels[0], "no other supports this network, precision and GPU"
    if is_deterministic(job.config):
        return kernels[0], "not timed, so that another run with train.deterministic chooses it, too"
    batch = packed(to_time(job, state, world), device)
    dtype = _LOW.get(job.config.precision.kind, torch.float32)
    timed = time_kernels(kernels, job.network, batch, dtype, _seconds_on_gpu)
    torch.cuda.empty_cache()
    return choose(timed)


def _kept(last: Mapping[str, Any], kernels: Sequence[Kernel]) -> Kernel | None:
    """Return the kernel of the last start, unless that was on a CPU, or it is not supported here."""
    if last["device"].startswith("cpu"):
        return None
    return next((kernel for kernel in kernels if kernel == last.get("attention")), None)


def choose(timed: Timed) -> tuple[Kernel, str]:
    """Return the fastest kernel and the reason; `padded` only if it is faster by a margin, or if no other works."""
    comparable = {kernel: taken * (_MARGIN if kernel == "padded" else 1) for kernel, taken in timed.seconds.items()}
    order = sorted(comparable, key=comparable.__getitem__)
    parts = [f"{kernel} {step_duration(timed.seconds[kernel])}" for kernel in order[1:]]
    parts += [f"{kernel} fails ({why})" for kernel, why in timed.failed.items()]
    if not order:
        return "padded", ", ".join(parts)
    return order[0], ", ".join([f"{step_duration(timed.seconds[order[0]])} a layer", *parts])


def to_time(job: TrainJob, state: State, world: int) -> MicroBatch:
    """Return a micro-batch of the current phase, or its beginning, in the shape that the network gets."""
    phase = job.phases[min(state.phase, len(job.phases) - 1)]
    fixed, places = job.config.graph.kind != "eager", _NUMBERS // job.network.hidden_size
    if phase.finds_micro_batch:  # later, when the kernel is known
        phase = phase.with_micro_batch(max(1, places // phase.loader.settings.length))
    if isinstance(job.config.graph, CompiledConfig):
        phase = job.in_full_rows(phase, world)
    batches = phase.loader.step(min(state.data_step, phase.steps - 1), 0, world)
    # Those of a step are sorted by length.
    batch = sorted(batches, key=lambda batch: batch.counts.tokens)[len(batches) // 2]
    sequences_R = np.diff(np.searchsorted(batch.cu_seqlens, batch.cu_rows))
    most = max(1, places // max(1, phase.loader.settings.length if fixed else batch.max_row))
    batch = split(batch, [sequences_R[:most]])[0]
    if not fixed:
        return batch
    room = phase.loader.room(world)
    rows = min(most, room.rows)
    return in_rows(batch, replace(room, rows=rows, sequences=-(-room.sequences * rows // room.rows)))


def time_kernels(
    kernels: Sequence[Kernel], network: NetworkConfig, batch: PackedBatch, dtype: torch.dtype, timer: Timer
) -> Timed:
    """Time the attention of the network's layers over the sequences of `batch`, on its device, forward and backward, in
    `dtype`."""
    layers = Counter(network.windows)
    taken: dict[Kernel, dict[int | None, list[float]]] = {
        kernel: {window: [] for window in layers} for kernel in kernels
    }
    failed = dict[Kernel, str]()
    inputs, dropout = _inputs(network, batch, dtype), network.attention_probs_dropout_prob
    passes = {
        kernel: {window: _pass(kernel, window, batch, inputs, dropout) for window in layers} for kernel in kernels
    }
    spent = 0.0
    for number in range(1 + _ROUNDS):  # the first warms up
        if number > 1 and spent > _SECONDS:
            break
        for kernel in kernels:
            try:
                seconds = {} if kernel in failed else {window: timer(one) for window, one in passes[kernel].items()}
            except Exception as error:  # of a compiler, a driver or a lack of memory
                failed[kernel] = _first_line(error)
                continue
            for window, one in seconds.items() if number else ():
                taken[kernel][window].append(one)
                spent += CALLS * one
    means = {
        kernel: sum(layers[window] * median(times) for window, times in of_kernel.items()) / layers.total()
        for kernel, of_kernel in taken.items()
        if kernel not in failed
    }
    return Timed(means, failed)


def _inputs(network: NetworkConfig, batch: PackedBatch, dtype: torch.dtype) -> list[Tensor]:
    """Random queries, keys, values, and the gradient of what is attended, each [T, A, D]."""
    heads = network.num_attention_heads
    shape_TAD, device = (len(batch.token_ids), heads, network.hidden_size // heads), batch.token_ids.device
    return [torch.randn(shape_TAD, dtype=dtype, device=device, requires_grad=number < 3) for number in range(4)]


def _pass(
    kernel: Kernel, window: int | None, batch: PackedBatch, inputs: Sequence[Tensor], dropout: float
) -> Callable[[], object]:
    """Return a forward and backward pass of the attention of one layer; its kernel is bound to the batch once, as in a
    network."""
    bound = cache(partial(bind, kernel, batch, window))
    q_TAD, k_TAD, v_TAD, grad_TAD = inputs
    return lambda: torch.autograd.grad(bound()(q_TAD, k_TAD, v_TAD, dropout), (q_TAD, k_TAD, v_TAD), grad_TAD)


def _seconds_on_gpu(call: Callable[[], object]) -> float:
    began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    began.record()
    for _ in range(CALLS):
        call()
    ended.record()
    ended.synchronize()
    return float(began.elapsed_time(ended)) / 1e3 / CALLS


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no message'}"[:200]
