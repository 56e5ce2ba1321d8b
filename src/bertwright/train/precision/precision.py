"""What a precision does to a forward pass, on a device that can."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from bertwright.core.errors import RecipeError
from bertwright.examples.batch import MicroBatch
from bertwright.examples.padding import with_room
from bertwright.train.precision.config import Bf16Config, Bf32Config, Fp8Config, Fp16Config, PrecisionConfig
from bertwright.train.precision.units import Units, refusal

TOKENS, PREDICTIONS = 256, 64
"""Sizes to whose next multiples batches are rounded up where kernels are made for one shape each."""


@dataclass(frozen=True)
class Precision:
    """The numbers of one training on one device."""

    config: PrecisionConfig
    device: torch.device

    @contextmanager
    def forward(self) -> Iterator[None]:
        """Computes a forward pass, its loss included, in these numbers. Backward passes follow by themselves."""
        enabled = self._low is not None and self.weights is None
        with torch.autocast(self.device.type, dtype=self._low or torch.bfloat16, enabled=enabled):
            yield

    @property
    def weights(self) -> torch.dtype | None:
        """The type of the weights that the network computes with, where it is not float32."""
        pure = isinstance(self.config, Bf16Config) and self.config.weights == "bf16"
        return torch.bfloat16 if pure else None

    @property
    def low(self) -> bool:
        """Whether products are in 16 bits."""
        return self._low is not None

    def fit(self, batch: MicroBatch) -> MicroBatch:
        """The batch in a shape for which a kernel is likely to be there already: the same sequences, and padding.

        oneDNN compiles its bfloat16 products for each shape, which takes as long as ten of them do.
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
            case Fp8Config() if self.device.type == "cuda":
                return torch.bfloat16
            case _:
                return None


def build_precision(config: PrecisionConfig, device: torch.device) -> Precision:
    """The precision of `config` on `device`; `RecipeError` where the device has no units for it."""
    if refused := refusal(config, _units(config, device)):
        raise RecipeError(f"train.precision = {config.kind}, but {refused.reason}. {refused.remedy}")
    if isinstance(config, Fp8Config):
        from bertwright.train.precision.fp8 import refuse_without_torchao

        refuse_without_torchao()
    return Precision(config, device)


def _units(config: PrecisionConfig, device: torch.device) -> Units:
    """What the device multiplies with, as far as it counts for `config`."""
    if device.type == "cuda":
        # The numbers of AMD's GPUs are of another kind.
        return Units(gpu=True, capability=None if torch.version.hip else torch.cuda.get_device_capability(device))
    # Each is asked where it counts: torch 2.3, in which ONNX Runtime trains, cannot tell the first.
    bf16 = isinstance(config, (Bf16Config, Fp16Config)) and _has_bf16()
    return Units(bf16=bf16, rounds=isinstance(config, Bf32Config) and _rounds_factors())


def _has_bf16() -> bool:
    """Whether this processor has instructions for products of bfloat16."""
    if hasattr(torch.cpu, "get_capabilities"):  # from torch 2.12 on, and the only one that knows ARM
        has = torch.cpu.get_capabilities()
        return any(has.get(unit) for unit in ("amx_bf16", "avx512_bf16", "bf16", "sve_bf16"))
    return bool(torch.cpu._is_avx512_bf16_supported())


def _rounds_factors() -> bool:
    """Whether products of float32 matrices have factors of bfloat16 here where that is asked for."""
    # By trying: torch leaves it to oneDNN, which has it on some processors and says nothing where it has not.
    matrix = torch.full((256, 256), 1 + 2.0**-12)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        return bool((matrix @ matrix == len(matrix)).all())
    finally:
        torch.set_float32_matmul_precision(before)
