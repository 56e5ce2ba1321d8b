"""Devices for training: GPUs by name with figures from their data sheets, and processors by instruction set."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from bertwright.core.errors import RecipeError
from bertwright.core.resources import processor_flags
from bertwright.estimate.measured_gpu import measured_gpu
from bertwright.train.precision.units import AMPERE, core_speed

CPU = "cpu"
"""The device name of this machine's processor."""
UNITS = {"fp32": "fp32", "tf32": "tf32", "bf32": "tf32", "bf16": "half", "fp16": "half"}
"""The kind of multiplication units used by each precision of a recipe."""
SMALLEST = "t4"
"""Stands for unknown GPUs: the smallest GPU with tensor cores, so that forecasts are too slow rather than too fast."""
_CPU_SHARE, _GPU_FP32 = 0.9, 0.8
"""Share of the peak that large products in a network reach: on a CPU, and on a GPU without tensor cores."""
# GFLOP/s that a core reaches in large bfloat16 products, as `core_speed` for float32. AMX: 30 % of the 1,024 operations
# a cycle at 1.9 GHz of a Xeon 8480+, with which the forecast meets its result in MLPerf Training 2.1
# (tests/fidelity/test_forecasts.py).
_CORE_HALF = {"amx_bf16": 600.0, "avx512_bf16": 190.0, "bf16": 55.0}
_CORE_EMULATED = 2.1
"""The same on a core with neither AVX-512 nor units for bfloat16, where torch multiplies number by number."""
_CORE_BANDWIDTH = 20.0
"""Memory bandwidth of a core, in GB/s."""
_SOCKET_BANDWIDTH = {"amx_bf16": 307.0, "": 200.0}
"""Its maximum for all cores of a socket: eight channels of DDR5-4800 where there is AMX, and of DDR4 elsewhere."""
_FLAGS = {
    "avx2": {"avx2"},
    "avx512": {"avx2", "avx512f"},
    "avx512_bf16": {"avx2", "avx512f", "avx512_bf16"},
    "amx": {"avx2", "avx512f", "avx512_bf16", "amx_bf16"},
}
"""What a processor has whose best instruction set is this one."""
REACHED = 0.8
"""Share of the data-sheet bandwidth that is achieved."""
_CORE_LINK, _CORE_WATTS = 4.0, 6.0
"""Per core: GB/s to neighbouring ranks, and watts."""


@dataclass(frozen=True)
class Device:
    """One GPU, or all cores of a processor that one rank uses."""

    name: str
    memory: float
    """Bytes; 0 if not known."""
    speeds: Mapping[str, float]
    """Peak operations per second of products, by unit: fp32, tf32, half; units that the device lacks are absent."""
    shares: Mapping[str, float]
    """Share of the peak that large products in a network reach, by unit."""
    bandwidth: float
    """Memory bandwidth, in bytes per second."""
    link: float
    """Bandwidth to its neighbours in one machine, one direction, in bytes per second."""
    watts: float
    """Watts at full load."""
    capability: tuple[int, int] | None = None
    """Compute capability of a GPU, which says what its units support; None if unknown."""
    emulated: float = 0.0
    """Operations per second of products of 16-bit numbers without units for them; 0: those of float32."""

    @property
    def gpu(self) -> bool:
        """Whether it is a GPU."""
        return self.name != CPU

    def fits(self, needed: float) -> bool:
        """Whether `needed` bytes fit; True if the memory is not known."""
        return not self.memory or needed <= self.memory

    def has(self, precision: str) -> bool:
        """Whether it has units for a precision of a recipe."""
        halves_alone = self.capability is not None and self.capability < AMPERE
        return UNITS[precision] in self.speeds and not (precision == "bf16" and halves_alone)

    def speed(self, precision: str) -> float:
        """Operations per second of large products in a network; without the unit, of what the device does instead."""
        if UNITS[precision] == "half" and self.emulated:
            return self.emulated
        unit = UNITS[precision] if self.has(precision) else "fp32"
        return self.speeds[unit] * self.shares[unit]


@cache
def gpus() -> dict[str, tuple[str, Device]]:
    """All known GPUs by name, each with the words of its driver name."""
    table = tomllib.loads(files("bertwright.estimate").joinpath("devices.toml").read_text(encoding="utf-8"))
    return {name: (str(row["driver"]), _gpu(name, row)) for name, row in table.items()}


def find_gpu(name: str) -> Device:
    """The GPU with this name; raises `RecipeError` with suggestions if it is unknown."""
    if name not in gpus():
        near = difflib.get_close_matches(name.lower(), gpus(), n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Known GPUs: {', '.join(gpus())}."
        raise RecipeError(f"{name!r} is not a known GPU. {hint}")
    return gpus()[name][1]


def gpu_of_driver(name: str, memory: float) -> Device | None:
    """The GPU with this driver name and the given memory; None if it is unknown."""
    for words, device in gpus().values():
        # Matches as a word or surrounded by letters (A10G, GB200), but an A1000 is not an A10.
        if set(words.split()) <= set(name.replace("-", " ").split()) or re.search(rf"{re.escape(words)}(?!\d)", name):
            return replace(device, memory=memory)
    return None


def processor(cores: int, memory: float, isa: str = "auto") -> Device:
    """A processor with the given number of training cores, bytes of memory and best instruction set (a value of
    `train.cpu_isa`); `auto`: that of this machine."""
    flags = processor_flags() if isa == "auto" else _FLAGS[isa]
    # All tables begin with the fastest instructions, and the first that the processor has count.
    halves = [speed for flag, speed in _CORE_HALF.items() if flag in flags]
    together = next(speed for flag, speed in _SOCKET_BANDWIDTH.items() if not flag or flag in flags)
    # oneDNN converts to float32 with AVX-512.
    emulated = 0.0 if halves or "avx512f" in flags else _CORE_EMULATED
    speeds = {"fp32": core_speed(flags) / 1e9, **({"half": halves[0], "tf32": halves[0] / 2} if halves else {})}
    return Device(
        CPU,
        memory,
        {unit: cores * speed * 1e9 for unit, speed in speeds.items()},
        dict.fromkeys(speeds, _CPU_SHARE),
        bandwidth=min(cores * _CORE_BANDWIDTH, together) * 1e9,
        link=cores * _CORE_LINK * 1e9,
        watts=cores * _CORE_WATTS,
        emulated=cores * emulated * _CPU_SHARE * 1e9,
    )


def _gpu(name: str, row: Mapping[str, Any]) -> Device:
    major, minor = row["capability"]
    tensor_cores = measured_gpu().products_in_a_step
    reached = {"fp32": _GPU_FP32, "tf32": tensor_cores, "half": tensor_cores}
    speeds = {unit: float(row[unit]) * 1e12 for unit in reached if unit in row}
    shares = {unit: reached[unit] for unit in speeds}
    giga = {key: float(row[key]) * 1e9 for key in ("memory_gb", "bandwidth", "link")}
    return Device(
        name,
        giga["memory_gb"],
        speeds,
        shares,
        giga["bandwidth"],
        giga["link"],
        float(row["watts"]),
        (int(major), int(minor)),
    )
