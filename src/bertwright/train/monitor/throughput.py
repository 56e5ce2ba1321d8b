"""Measures throughput: operations per step, compared with the time that the matrix products alone would take.

This lower bound is measured once at the start, in a fraction of a second: the matrix products of the network's linear
layers and decoder, forward and backward, in the precision of the run, with nothing in between. Any time beyond that is
everything else: attention's slower products, norms, dropout, the loss, the optimizer, waiting for data and for other
ranks.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from bertwright.examples.batch import MicroBatch
from bertwright.examples.loader import LoaderSettings
from bertwright.model.config import NetworkConfig
from bertwright.model.flops import STEP, step_flops
from bertwright.model.model import Model
from bertwright.train.monitor.session_record import peak_memory
from bertwright.train.precision.precision import Precision
from bertwright.train.ranks.ranks import Ranks

_ROWS = {"cpu": 512, "cuda": 1 << 14}
"""Maximum rows of a timed product: enough to be as fast as larger ones, few enough to measure quickly."""
_TIMES = 3
"""Number of times each product is timed; the fastest counts, because disturbances only make a product slower."""


Shape = tuple[int, int, int]
"""Rows, input features and output features of a linear layer."""


@dataclass(frozen=True)
class Throughput:
    """Computes the throughput and memory values of a metrics row."""

    network: NetworkConfig
    device: torch.device
    floor: float
    """Operations per second of the matrix products alone, over all ranks together."""

    def flops(self, batches: Sequence[MicroBatch], only_rows: bool = False) -> int:
        """Return the operations of this rank's share of a step, forward and backward, as `step_flops`."""
        return sum(
            step_flops(self.network, np.diff(batch.cu_seqlens), batch.counts.predictions, only_rows)
            for batch in batches
        )

    def row(self, flops: float, seconds: float) -> dict[str, float | int]:
        """Return TFLOPS (10^12 operations per second), the ratio of the time to that of the products alone, and the
        peak memory so far in bytes."""
        return {
            "tflops_per_second": flops / seconds / 1e12,
            "floor_ratio": seconds * self.floor / flops if flops else float("nan"),
            "memory_bytes": self._memory(),
        }

    def _memory(self) -> int:
        """Return the peak memory of this process in bytes: what torch took from a GPU, else resident memory."""
        # Reserved, not allocated: a replayed CUDA graph uses its pool without allocating from it.
        return torch.cuda.max_memory_reserved(self.device) if self.device.type == "cuda" else peak_memory()


def measure_throughput(model: Model, precision: Precision, settings: LoaderSettings, ranks: Ranks) -> Throughput:
    """Build the meter of a run whose forward passes have the sizes in `settings`.

    All ranks must call this together, and measure at the same time. Draws no random numbers and keeps no memory, so it
    does not affect training.
    """
    micro = settings.micro_batching
    tokens = micro.micro_tokens or min(micro.micro_batch, settings.global_batch) * settings.length
    # In thousands, because the all-reduce is of integers below 2^63.
    (thousands,) = ranks.all_reduce_async([int(_speed(model, precision, tokens, settings) / 1000)]).result()
    return Throughput(model.config, precision.device, thousands * 1000.0)


def _speed(model: Model, precision: Precision, tokens: int, settings: LoaderSettings) -> float:
    """Return operations per second of the network's matrix products on this rank alone."""
    device = precision.device
    rows = max(1, min(tokens, _ROWS.get(device.type, _ROWS["cpu"])))
    predictions = max(1, rows * settings.masking.most(settings.length) // settings.length)
    with precision.forward():
        # The dtype products are computed in; weights stay float32 and would be converted each time.
        one = torch.ones(1, 1, device=device)
        dtype = precision.weights or one.mm(one).dtype
    seconds = {shape: _seconds(shape, dtype, device) for shape in set(_products(model, rows, predictions))}
    shapes = list(_products(model, rows, predictions))
    return sum(2.0 * STEP * math.prod(shape) for shape in shapes) / max(sum(seconds[s] for s in shapes), 1e-9)


def _products(model: Model, rows: int, predictions: int) -> Iterator[Shape]:
    """Yield rows, inputs and outputs of every linear layer that each token passes through, and of the decoder if
    any."""
    encoder = model.get_submodule(model.config.family)
    yield from ((rows, m.in_features, m.out_features) for m in encoder.modules() if isinstance(m, nn.Linear))
    if model.config.predicts_tokens:
        yield predictions, model.config.hidden_size, model.config.vocab_size


def _seconds(shape: Shape, dtype: torch.dtype, device: torch.device) -> float:
    """Return the seconds for a linear layer's three products: forward, gradient of the inputs, gradient of the
    weights."""
    rows, inputs, outputs = shape
    # Not zeros, which some units multiply faster, and not random, because training's random numbers must not be used
    # up.
    x = torch.full((rows, inputs), 0.5, dtype=dtype, device=device)
    weight = torch.full((outputs, inputs), 0.5, dtype=dtype, device=device)
    y = torch.full((rows, outputs), 0.5, dtype=dtype, device=device)
    products: tuple[tuple[Tensor, Tensor], ...] = ((x, weight.t()), (y, weight), (y.t(), x))
    fastest = float("inf")
    for _ in range(1 + _TIMES):  # the first one warms up caches and compilers
        _finish(device)
        began = time.perf_counter()
        for left, right in products:
            torch.mm(left, right)
        _finish(device)
        fastest = min(fastest, time.perf_counter() - began)
    return fastest


def _finish(device: torch.device) -> None:
    """Wait until the device has finished all submitted work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
