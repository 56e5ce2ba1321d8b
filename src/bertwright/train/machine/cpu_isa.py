"""Limits the CPU instruction sets that torch's libraries use; must run before torch is loaded.

Three libraries compute on a CPU: torch's own kernels, oneDNN and MKL. Each uses the widest instructions it finds and
checks only once, when it is loaded or first computes, so the limits must be in the environment before that. The
instructions determine the order of summation, and with it the bits of the result. Intel's scripts limit only oneDNN,
with DNNL_MAX_CPU_ISA; this module limits all three together. Does not import torch.
"""

from __future__ import annotations

import os
import platform
import sys

from bertwright.core.errors import RecipeError
from bertwright.core.log import Log
from bertwright.core.resources import processor_flags
from bertwright.train.config import TrainConfig

VARIABLES = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS")
"""Environment variables that limit torch's own kernels, oneDNN and MKL."""
_OLD_NAME = "DNNL_MAX_CPU_ISA"
"""Older variable that oneDNN reads if the newer one is not set."""
BOUNDS = {
    "avx2": ("avx2", "AVX2", "AVX2"),
    "avx512": ("avx512", "AVX512_CORE", "AVX512"),
    "avx512_bf16": ("avx512", "AVX512_CORE_BF16", "AVX512_E3"),
    "amx": ("avx512", "AVX512_CORE_AMX", "AVX512_E4"),
}
"""The values of `VARIABLES` for each limit, from the narrowest instruction set to the widest."""
_FLAGS = {"avx2": "avx2", "avx512": "avx512bw", "avx512_bf16": "avx512_bf16", "amx": "amx_bf16"}
"""CPU flags by which Linux reports each instruction set."""


def widest() -> str:
    """Return the last of `BOUNDS` that this processor has; "" if it has none or its flags are unknown."""
    return next((name for name in reversed(BOUNDS) if _FLAGS[name] in processor_flags()), "")


def lacking(wanted: str) -> str:
    """Return why this processor cannot be limited to `wanted`, as the end of a sentence; "" if it can."""
    order, has = ["auto", *BOUNDS], widest()
    if order.index(wanted) <= order.index(has or "auto"):
        return ""
    return f"this processor ({platform.machine()}) has {f'{has} at most' if has else 'none of these instructions'}"


def limit_isa(config: TrainConfig, log: Log) -> None:
    """Limit the instruction set as the recipe says, and log it; must be called before torch is loaded.

    Raises `RecipeError` if this processor lacks the instructions, the environment sets other values, or torch is
    already loaded.
    """
    wanted = config.cpu_isa
    if wanted == "auto":
        return
    if reason := lacking(wanted):
        raise RecipeError(f"train.cpu_isa = {wanted}, but {reason}. Leave it out, or set a lower bound.")
    values = dict(zip(VARIABLES, BOUNDS[wanted], strict=True))
    for name, value in values.items():
        # As oneDNN reads them: the old name counts if the new one is not set.
        given = os.environ.get(name) or (os.environ.get(_OLD_NAME) if name == VARIABLES[1] else None) or value
        if given.upper() != value.upper():
            raise RecipeError(
                f"train.cpu_isa = {wanted} sets {name}={value}, but the environment says {given}. Unset it there, or "
                "leave train.cpu_isa out."
            )
    if "torch" in sys.modules and any(name not in os.environ for name in values):
        shown = " ".join(f"{name}={value}" for name, value in values.items())
        raise RecipeError(
            f"train.cpu_isa = {wanted} must be applied before torch is loaded, but this process has already loaded "
            f"it. Set {shown} in the environment before Python starts, or train from the command line."
        )
    os.environ.update(values)
    log.say(f"train: instructions up to {wanted} (train.cpu_isa); the processor has {widest()}")


def in_use() -> str:
    """Return the instruction set limit in use: one of `BOUNDS`, or the environment's values if they match none.

    "" if the processor's instructions are unknown and nothing limits them.
    """
    names = (VARIABLES[0], VARIABLES[1] if os.environ.get(VARIABLES[1]) else _OLD_NAME, VARIABLES[2])
    given = {name: value for name in names if (value := os.environ.get(name))}
    if not given:
        return widest()
    current = tuple(given.get(name, "").upper() for name in names)
    known = (name for name, values in BOUNDS.items() if tuple(value.upper() for value in values) == current)
    return next(known, "") or " ".join(f"{name}={value}" for name, value in given.items())
