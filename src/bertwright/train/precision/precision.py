"""Applies a precision to forward passes, on a device that supports it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from bertwright.core.errors import RecipeError
from bertwright.examples.batch import MicroBatch
from bertwright.examples.padding import with_room
from bertwright.model.model import Model
from bertwright.train.precision.config import Bf16Config, Bf32Config, Fp16Config, PrecisionConfig
from bertwright.train.precision.units import Units, refusal

TOKENS, PREDICTIONS = 256, 64
"""Batch sizes are rounded up to multiples of these if kernels are compiled per shape."""


@dataclass(frozen=True)
class Precision:
    """The numeric precision of one training on one device."""

    config: PrecisionConfig
    device: torch.device

    @contextmanager
    def forward(self) -> Iterator[None]:
        """Compute a forward pass, including its loss, in this precision. Backward passes need no context."""
        enabled = self._low is not None and self.weights is None
        with torch.autocast(self.device.type, dtype=self._low or torch.bfloat16, enabled=enabled):
            yield

    @property
    def weights(self) -> torch.dtype | None:
        """The dtype of the weights that the network computes with; None if it is float32."""
        pure = isinstance(self.config, Bf16Config) and self.config.weights == "bf16"
        return torch.bfloat16 if pure else None

    @property
    def low(self) -> bool:
        """Whether matrix products are in 16 bits."""
        return self._low is not None

    def fit(self, batch: MicroBatch) -> MicroBatch:
        """Return the batch padded to a shape for which a kernel is likely to exist already.

        oneDNN compiles its bfloat16 products for each shape, which takes as long as computing ten of them.
        """
        if self.device.type != "cpu" or not (self.low or isinstance(self.config, Bf32Config)):
            return batch
        _, tokens, predictions = batch.counts
        return with_room(batch, -(-tokens // TOKENS) * TOKENS, -(-predictions // PREDICTIONS) * PREDICTIONS)

    @property
    def _low(self) -> torch.dtype | None:
        match self.config:
            case Bf16Config():
                return torch.bfloat16
            case Fp16Config():
                return torch.float16
            case _:
                return None


def build_precision(config: PrecisionConfig, device: torch.device) -> Precision:
    """Return the precision of `config` on `device`; raise `RecipeError` if the device has no units for it."""
    if refused := refusal(config, units_for(config, device)):
        raise RecipeError(f"train.precision = {config.kind}, but {refused.reason}. {refused.remedy}")
    return Precision(config, device)


def units_for(config: PrecisionConfig, device: torch.device) -> Units:
    """Return the multiplication units of the device, as far as they matter for `config`."""
    if device.type == "cuda":
        # Capability numbers of AMD GPUs have another meaning.
        return Units(gpu=True, capability=None if torch.version.hip else torch.cuda.get_device_capability(device))
    # Each is checked only if needed: torch 2.3, with which ONNX Runtime trains, cannot report the first.
    bf16 = isinstance(config, (Bf16Config, Fp16Config)) and has_bf16()
    return Units(bf16=bf16, rounds=isinstance(config, Bf32Config) and _rounds_factors())


def has_bf16() -> bool:
    """Whether this processor has instructions for bfloat16 products."""
    if hasattr(torch.cpu, "get_capabilities"):  # from torch 2.12 on; the only one that covers ARM
        has = torch.cpu.get_capabilities()
        return any(has.get(unit) for unit in ("amx_bf16", "avx512_bf16", "bf16", "sve_bf16"))
    return bool(torch.cpu._is_avx512_bf16_supported())


def _rounds_factors() -> bool:
    """Whether float32 matrix products use bfloat16 factors here if requested."""
    # By trial: torch leaves it to oneDNN, which supports it on some processors and silently ignores it on others.
    matrix = torch.full((256, 256), 1 + 2.0**-12)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        return bool((matrix @ matrix == len(matrix)).all())
    finally:
        torch.set_float32_matmul_precision(before)


class LowCopy:
    """A copy of `master` whose parameters and computations have dtype `dtype` (Micikevicius et al. 2018 §3.1).

    The master keeps its weights in float32: the optimizer updates them, and checkpoints, averages and exports use
    them. The copy computes: its weights are rounded from the master's at every step, and its gradients are added to the
    master's, in float32, as soon as each is available.
    """

    def __init__(self, master: Model, dtype: torch.dtype) -> None:
        self.network = deepcopy(master).to(dtype)
        self._masters = [p.detach() for p in master.parameters()]
        self._copies = [p.detach() for p in self.network.parameters()]
        for copy, original in zip(self.network.parameters(), master.parameters(), strict=True):
            copy.register_post_accumulate_grad_hook(partial(_hand_over, original))  # type: ignore[no-untyped-call]

    def refresh(self) -> Model:
        """Return the copy that computes, with weights rounded from the current weights of its master."""
        torch._foreach_copy_(self._copies, self._masters)
        return self.network


def _hand_over(original: nn.Parameter, copy: Tensor) -> None:
    """Add the copy's gradient, of any shape, to the original's."""
    # Immediately and in float32: low-precision sums over micro-batches would lose small gradients, and a delay would
    # keep two copies.
    gradient, copy.grad = copy.grad, None
    assert gradient is not None
    original.grad = gradient.to(original.dtype) if original.grad is None else original.grad.add_(gradient)
