"""How hard the machine works: operations of a step, and beside them what its matrix products alone would take.

The floor is measured once at the start, in a fraction of a second: the products of the network's linear maps and of
its decoder, forward and backward, in the precision of the run, with nothing in between. What a step takes more than
its operations at that speed is all the rest: attention's own products being slower, norms, dropout, the loss, the
optimizer, waiting for data and for other ranks.
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
from bertwright.model.flops import STEP, forward_flops
from bertwright.model.model import Model
from bertwright.train.facts import peak_memory
from bertwright.train.precision.precision import Precision
from bertwright.train.ranks import Ranks

_ROWS = {"cpu": 512, "cuda": 1 << 14}
"""Most rows of a product that is timed: enough to be as fast as larger ones, few enough to take no time."""
_TIMES = 3
"""How often each product is timed; the fastest counts, since nothing makes one faster than it is."""


Shape = tuple[int, int, int]
"""Rows, inputs and outputs of a linear map."""


@dataclass(frozen=True)
class Meter:
    """What a row of metrics says of computing and memory."""

    network: NetworkConfig
    device: torch.device
    floor: float
    """Operations a second of the matrix products alone, all ranks together."""

    def flops(self, batches: Sequence[MicroBatch]) -> int:
        """The operations of this rank's share of a step, forward and backward."""
        return STEP * sum(
            forward_flops(self.network, np.diff(batch.cu_seqlens), batch.counts.predictions) for batch in batches
        )

    def row(self, flops: float, seconds: float) -> dict[str, float | int]:
        """10^12 operations a second, the time over that of the products alone, and the most memory so far, in bytes."""
        return {
            "tflops_per_second": flops / seconds / 1e12,
            "floor_ratio": seconds * self.floor / flops if flops else float("nan"),
            "memory_bytes": self._memory(),
        }

    def _memory(self) -> int:
        """The most that this process has held: on a GPU of its memory, in tensors; else resident."""
        return torch.cuda.max_memory_allocated(self.device) if self.device.type == "cuda" else peak_memory()


def build_meter(model: Model, precision: Precision, settings: LoaderSettings, ranks: Ranks) -> Meter:
    """The meter of a run whose forward passes are as `settings` says; all ranks together, which measure at once.

    Draws no random number and keeps no memory, so training does not depend on it.
    """
    micro = settings.micro_batching
    tokens = micro.micro_tokens or min(micro.micro_batch, settings.global_batch) * settings.length
    # In thousands, for the sum is of whole numbers below 2^63.
    (thousands,) = ranks.all_reduce_async([int(_speed(model, precision, tokens, settings) / 1000)]).result()
    return Meter(model.config, precision.device, thousands * 1000.0)


def _speed(model: Model, precision: Precision, tokens: int, settings: LoaderSettings) -> float:
    """Operations a second of the network's matrix products on this rank alone."""
    device = precision.device
    rows = max(1, min(tokens, _ROWS.get(device.type, _ROWS["cpu"])))
    predictions = max(1, rows * settings.masking.most(settings.length) // settings.length)
    with precision.forward():
        # What products are computed in; weights stay float32 and would be converted each time.
        one = torch.ones(1, 1, device=device)
        dtype = precision.weights or one.mm(one).dtype
    seconds = {shape: _seconds(shape, dtype, device) for shape in set(_products(model, rows, predictions))}
    shapes = list(_products(model, rows, predictions))
    return sum(2.0 * STEP * math.prod(shape) for shape in shapes) / max(sum(seconds[s] for s in shapes), 1e-9)


def _products(model: Model, rows: int, predictions: int) -> Iterator[Shape]:
    """Rows, inputs and outputs of every linear map that each token goes through, and of the decoder if there is one."""
    encoder = model.get_submodule(model.config.family)
    yield from ((rows, m.in_features, m.out_features) for m in encoder.modules() if isinstance(m, nn.Linear))
    if not model.config.labels:
        yield predictions, model.config.hidden_size, model.config.vocab_size


def _seconds(shape: Shape, dtype: torch.dtype, device: torch.device) -> float:
    """The time of a linear map's three products: forward, for its inputs and for its weights."""
    rows, inputs, outputs = shape
    # Not zeros, which some units multiply faster; and not drawn, for no random number may be taken from training.
    x = torch.full((rows, inputs), 0.5, dtype=dtype, device=device)
    weight = torch.full((outputs, inputs), 0.5, dtype=dtype, device=device)
    y = torch.full((rows, outputs), 0.5, dtype=dtype, device=device)
    products: tuple[tuple[Tensor, Tensor], ...] = ((x, weight.t()), (y, weight), (y.t(), x))
    fastest = float("inf")
    for _ in range(1 + _TIMES):  # the first one is for caches and compilers
        _finish(device)
        began = time.perf_counter()
        for left, right in products:
            torch.mm(left, right)
        _finish(device)
        fastest = min(fastest, time.perf_counter() - began)
    return fastest


def _finish(device: torch.device) -> None:
    """Wait until the device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
