"""Which device supports which precision, and what to do if it does not. Does not import torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bertwright.train.precision.config import Bf16Config, Bf32Config, Fp16Config, PrecisionConfig, Tf32Config

AMPERE = (8, 0)
"""Lowest compute capability of NVIDIA GPUs with units for bf16 and tf32."""
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
