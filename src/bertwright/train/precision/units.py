"""Which device can compute in which precision, and what to do where one cannot. Knows no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bertwright.train.precision.config import Bf16Config, Bf32Config, Fp8Config, Fp16Config, PrecisionConfig, Tf32Config

AMPERE, ADA = (8, 0), (8, 9)
"""The compute capabilities of NVIDIA's GPUs with which units for bf16 and tf32, and for float8, begin."""
_ALL_THE_SAME = "or train.precision.allow_slow=true to train so all the same."


@dataclass(frozen=True)
class Units:
    """What a device multiplies with."""

    gpu: bool = False
    """Whether it is one; else a processor."""
    capability: tuple[int, int] | None = None
    """Of a GPU of NVIDIA; None where nothing is known of it, and nothing refused."""
    bf16: bool = False
    """Whether a processor has instructions for products of bfloat16."""
    rounds: bool = False
    """Whether a processor's products of float32 can have factors of bfloat16."""


class Refusal(NamedTuple):
    """Why a device should not compute in a precision."""

    reason: str
    """What follows "train.precision = bf16, but"."""
    remedy: str
    """What to do: a sentence."""


def refusal(config: PrecisionConfig, units: Units) -> Refusal | None:
    """Why a device with these units cannot compute in this precision, or would take many times as long without the
    recipe's leave; None where it can."""
    return _of_gpu(config, units.capability) if units.gpu else _of_processor(config, units)


def _of_gpu(config: PrecisionConfig, has: tuple[int, int] | None) -> Refusal | None:
    able = has is None or has >= AMPERE
    gpu = f"this GPU has compute capability {has[0]}.{has[1]}" if has else ""
    match config:
        case Bf32Config():
            instead = "tf32, which a GPU has in its place" if able else "fp32"
            return Refusal("it is of processors, and a GPU will train", _set(f"{instead}, or train.device=cpu."))
        case Tf32Config() if not able:
            return Refusal(f"{gpu}, and tensor cores for it begin at 8.0 (NVIDIA Ampere)", _set("fp32."))
        case Bf16Config(allow_slow=False) if not able:
            return Refusal(
                f"{gpu}, and units for it begin at 8.0 (NVIDIA Ampere)", _set(f"fp16 or fp32, {_ALL_THE_SAME}")
            )
        case Fp8Config() if has and has < ADA:
            instead = "bf16." if able else "fp16."
            return Refusal(f"{gpu}, and float8 products begin at 8.9 (NVIDIA Ada, Hopper)", _set(instead))
    return None


def _of_processor(config: PrecisionConfig, units: Units) -> Refusal | None:
    slow = _set(f"fp32, {_ALL_THE_SAME}")
    match config:
        case Tf32Config():
            return Refusal("a processor has no tensor cores for it", _set("fp32."))
        case Bf32Config() if not units.rounds:
            reason = "this processor has no unit for it (AMX), or its instructions are bounded below it"
            return Refusal(reason, _set("fp32."))
        case Bf16Config(allow_slow=False) if not units.bf16:
            reason = "this processor has no unit for it (AMX or AVX512-BF16): a step would take ten times as long"
            return Refusal(f"{reason} as in fp32", slow)
        case Fp16Config(allow_slow=False):
            reason = "a processor takes many times as long for its products as for float32's"
            return Refusal(reason, _set(f"bf16, fp32, {_ALL_THE_SAME}") if units.bf16 else slow)
        case Fp8Config(allow_slow=False):
            return Refusal("a processor can only imitate it", slow)
    return None


def _set(value: str) -> str:
    return f"Set train.precision={value}"
