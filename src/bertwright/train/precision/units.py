"""Which device supports which precision, and what to do if it does not. Does not import torch."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from bertwright.train.precision.config import (
    Bf16Config,
    Bf32Config,
    Fp16Config,
    Fp32Config,
    PrecisionConfig,
    Tf32Config,
)

VOLTA, AMPERE = (7, 0), (8, 0)
"""Lowest compute capabilities of NVIDIA GPUs with units for fp16, and for bf16 and tf32."""
CORE_FP32 = {"amx_bf16": 62.0, "avx512_bf16": 80.0, "avx512f": 62.0, "avx2": 40.0, "": 11.0}
"""GFLOP/s that a core reaches in large float32 products, by its best instructions (the first that it has), measured on
shared cores of Xeons with AMX and of EPYCs."""
SHORT = 300.0
"""Seconds of float32 products, at the speeds of that table, below which `auto` is fp32 on a CPU without measuring."""
SPEEDUP = 1.2
"""How many times as fast as in fp32 a pass on a CPU must be for `auto` to choose bf16."""
_ALL_THE_SAME = "or train.precision.allow_slow=true to train with it anyway."


@dataclass(frozen=True)
class Units:
    """The multiplication units of a device."""

    gpu: bool = False
    """Whether the device is a GPU; otherwise it is a CPU."""
    capability: tuple[int, int] | None = None
    """Compute capability of an NVIDIA GPU; None if unknown, in which case nothing is refused."""
    bf16: bool = False
    """Whether a CPU has instructions for bfloat16 products."""
    rounds: bool = False
    """Whether a CPU's float32 products can use bfloat16 factors."""


class Refusal(NamedTuple):
    """Why a device should not compute in a precision."""

    reason: str
    """Completes the sentence "train.precision = bf16, but"."""
    remedy: str
    """What to do, as a sentence."""


def refusal(config: PrecisionConfig, units: Units) -> Refusal | None:
    """Return why a device with these units cannot compute in this precision, or would take many times as long without
    the recipe allowing it; None if it can."""
    return _of_gpu(config, units.capability) if units.gpu else _of_processor(config, units)


class Choice(NamedTuple):
    """What `train.precision = auto` means on a device."""

    config: PrecisionConfig
    reason: str
    """Completes the sentence "precision bf16:"."""


def of_gpu(capability: tuple[int, int] | None, engine: str) -> Choice:
    """Return what `auto` means on a GPU of this compute capability (None if unknown) with this kind of engine."""
    gpu = f"this GPU has compute capability {capability[0]}.{capability[1]}" if capability else "this is a GPU"
    if capability is None or capability >= AMPERE:
        return Choice(Bf16Config(), gpu)
    if capability < VOLTA:
        return Choice(Fp32Config(), f"{gpu}, and units for fp16 need at least 7.0 (NVIDIA Volta)")
    if engine == "deepspeed":  # whose network in fp16 has weights in fp16, which cannot be averaged
        return Choice(Fp32Config(), f"{gpu}, without bf16, and in fp16 DeepSpeed rounds the weights, too")
    return Choice(Fp16Config(), f"{gpu}, and units for bf16 need at least 8.0 (NVIDIA Ampere)")


def core_speed(flags: Collection[str]) -> float:
    """Return the operations per second that a core with these instruction sets reaches in large float32 products."""
    return 1e9 * next(speed for flag, speed in CORE_FP32.items() if not flag or flag in flags)


def _of_gpu(config: PrecisionConfig, has: tuple[int, int] | None) -> Refusal | None:
    able = has is None or has >= AMPERE
    gpu = f"this GPU has compute capability {has[0]}.{has[1]}" if has else ""
    match config:
        case Bf32Config():
            instead = "tf32, the equivalent on a GPU" if able else "fp32"
            return Refusal("it is for CPUs, and a GPU will train", _set(f"{instead}, or train.device=cpu."))
        case Tf32Config() if not able:
            return Refusal(f"{gpu}, and tensor cores for it need at least 8.0 (NVIDIA Ampere)", _set("fp32."))
        case Bf16Config(allow_slow=False) if not able:
            return Refusal(
                f"{gpu}, and units for it need at least 8.0 (NVIDIA Ampere)", _set(f"fp16 or fp32, {_ALL_THE_SAME}")
            )
    return None


def _of_processor(config: PrecisionConfig, units: Units) -> Refusal | None:
    slow = _set(f"fp32, {_ALL_THE_SAME}")
    match config:
        case Tf32Config():
            return Refusal("a CPU has no tensor cores for it", _set("fp32."))
        case Bf32Config() if not units.rounds:
            reason = "this CPU has no unit for it (AMX), or train.cpu_isa disables that unit"
            return Refusal(reason, _set("fp32."))
        case Bf16Config(allow_slow=False) if not units.bf16:
            reason = "this CPU has no unit for it (AMX or AVX512-BF16): a step would take ten times as long"
            return Refusal(f"{reason} as in fp32", slow)
        case Fp16Config(allow_slow=False):
            reason = "a CPU takes many times as long for its products as for float32"
            return Refusal(reason, _set(f"bf16, fp32, {_ALL_THE_SAME}") if units.bf16 else slow)
    return None


def _set(value: str) -> str:
    return f"Set train.precision={value}"
