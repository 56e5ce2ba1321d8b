"""How far torch's libraries use the processor's instruction sets: settled before torch is loaded.

Three libraries compute on a processor: torch's own kernels, oneDNN and MKL. Each takes the widest instructions that it
finds and looks once, when it is loaded or first computes, so what bounds them has to be in the environment before. The
order of summation follows from the instructions, and with it the bits. Intel's scripts bound oneDNN alone, by
DNNL_MAX_CPU_ISA; here all three are bounded together. Knows no torch.
"""

from __future__ import annotations

import os
import platform
import sys

from bertwright.core.errors import RecipeError
from bertwright.core.log import Log
from bertwright.core.processor import processor_flags
from bertwright.train.config import TrainConfig

VARIABLES = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS")
"""What bounds torch's own kernels, oneDNN and MKL."""
_OLD_NAME = "DNNL_MAX_CPU_ISA"
"""What oneDNN reads too, where the newer name is not set."""
BOUNDS = {
    "avx2": ("avx2", "AVX2", "AVX2"),
    "avx512": ("avx512", "AVX512_CORE", "AVX512"),
    "avx512_bf16": ("avx512", "AVX512_CORE_BF16", "AVX512_E3"),
    "amx": ("avx512", "AVX512_CORE_AMX", "AVX512_E4"),
}
"""The values of `VARIABLES` for each bound, from the least instructions to the most."""
_FLAGS = {"avx2": "avx2", "avx512": "avx512bw", "avx512_bf16": "avx512_bf16", "amx": "amx_bf16"}
"""By what Linux tells that a processor has the instructions."""


def widest() -> str:
    """The last of `BOUNDS` that this processor has; "" where it has none, or none is known of it."""
    return next((name for name in reversed(BOUNDS) if _FLAGS[name] in processor_flags()), "")


def lacking(wanted: str) -> str:
    """Why this processor cannot be bounded so, as the end of a sentence; "" where it can."""
    order, has = ["auto", *BOUNDS], widest()
    if order.index(wanted) <= order.index(has or "auto"):
        return ""
    return f"this processor ({platform.machine()}) has {f'{has} at most' if has else 'none of these instructions'}"


def bound(config: TrainConfig, log: Log) -> None:
    """Bound the instructions as the recipe says, and say so; called before torch is loaded.

    `RecipeError` where this processor lacks them, the environment says otherwise, or it is too late.
    """
    wanted = config.cpu_isa
    if wanted == "auto":
        return
    if reason := lacking(wanted):
        raise RecipeError(f"train.cpu_isa = {wanted}, but {reason}. Leave it out, or name less.")
    values = dict(zip(VARIABLES, BOUNDS[wanted], strict=True))
    for name, value in values.items():
        # As oneDNN reads them: the old name counts where the new one is not there.
        given = os.environ.get(name) or (os.environ.get(_OLD_NAME) if name == VARIABLES[1] else None) or value
        if given.upper() != value.upper():
            raise RecipeError(
                f"train.cpu_isa = {wanted} sets {name}={value}, but the environment says {given}. Unset it there, or "
                "leave train.cpu_isa out."
            )
    if "torch" in sys.modules and any(name not in os.environ for name in values):
        shown = " ".join(f"{name}={value}" for name, value in values.items())
        raise RecipeError(
            f"train.cpu_isa = {wanted} must be settled before torch is loaded, and this process has loaded it. Set "
            f"{shown} in the environment before Python starts, or train by the command line."
        )
    os.environ.update(values)
    log.say(f"train: instructions up to {wanted} (train.cpu_isa); the processor has {widest()}")


def in_use() -> str:
    """How far instructions are used here: one of `BOUNDS`, or what the environment says where it says it otherwise.

    "" where nothing is known of this processor's, and nothing bounds them.
    """
    names = (VARIABLES[0], VARIABLES[1] if os.environ.get(VARIABLES[1]) else _OLD_NAME, VARIABLES[2])
    given = {name: value for name in names if (value := os.environ.get(name))}
    if not given:
        return widest()
    said = tuple(given.get(name, "").upper() for name in names)
    known = (name for name, values in BOUNDS.items() if tuple(value.upper() for value in values) == said)
    return next(known, "") or " ".join(f"{name}={value}" for name, value in given.items())
