"""What a precision does to a forward pass, and whether this machine can."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from bertwright.core.errors import RecipeError
from bertwright.examples.batch import MicroBatch
from bertwright.examples.padding import with_room
from bertwright.train.precision.config import Bf16Config, Bf32Config, Fp8Config, Fp16Config, PrecisionConfig, Tf32Config

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
    gpu = device.type == "cuda"
    match config:
        case Tf32Config() if not gpu or torch.cuda.get_device_capability(device) < (8, 0):
            raise RecipeError(
                f"train.precision = tf32, but this {'GPU' if gpu else 'processor'} has no tensor cores for it (NVIDIA "
                "Ampere or later has). Set train.precision=fp32."
            )
        case Bf32Config() if gpu:
            raise RecipeError(
                "train.precision = bf32, but this is a GPU, and bf32 is of processors. Set train.precision=tf32, which "
                "a GPU has in its place, or train.device=cpu."
            )
        case Bf32Config() if not _rounds_factors():
            raise RecipeError(
                "train.precision = bf32, but products in float32 stay as they are on this processor: it has no unit "
                "for them (AMX), or its instructions are bounded below it. Set train.precision=fp32."
            )
        case Bf16Config(allow_slow=False) if not _has_bf16(device):
            raise RecipeError(
                f"train.precision = bf16, but this {'GPU' if gpu else 'processor'} has no unit for it (AMX, "
                "AVX512-BF16; NVIDIA from Ampere on): a step would take ten times as long as in fp32. Set "
                "train.precision=fp32, or train.precision.allow_slow=true to train so all the same."
            )
        case Fp16Config(allow_slow=False) if not gpu:
            raise RecipeError(
                "train.precision = fp16, but this is a processor, whose float16 products take many times as long as "
                "float32. Set train.precision=bf16 where it has units for that, train.precision=fp32, or "
                "train.precision.allow_slow=true to train so all the same."
            )
        case Fp8Config(allow_slow=False) if not gpu:
            raise RecipeError(
                "train.precision = fp8, but this is a processor, which can only imitate float8. Set "
                "train.precision=fp32, or train.precision.allow_slow=true to train so all the same."
            )
        case Fp8Config() if gpu and torch.cuda.get_device_capability(device) < (8, 9):
            major, minor = torch.cuda.get_device_capability(device)
            raise RecipeError(
                f"train.precision = fp8, but this GPU has compute capability {major}.{minor}, and float8 products "
                "begin at 8.9 (NVIDIA Ada, Hopper). Set train.precision=bf16."
            )
        case _:
            if isinstance(config, Fp8Config):
                from bertwright.train.precision.fp8 import refuse_without_torchao

                refuse_without_torchao()
            return Precision(config, device)


def _has_bf16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
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
