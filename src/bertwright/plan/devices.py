"""What can train: GPUs by name with the numbers of their data sheets, and processors by their instruction sets."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from bertwright.core.errors import RecipeError
from bertwright.core.processor import processor_flags

CPU = "cpu"
"""The name of the processor of this machine."""
UNITS = {"fp32": "fp32", "tf32": "tf32", "bf32": "tf32", "bf16": "half", "fp16": "half", "fp8": "fp8"}
"""The units that multiply in each precision of a recipe."""
SMALLEST = "t4"
"""What a GPU is taken for that no table has: the smallest with tensor cores, slower than it is rather than faster."""
_GPU_SHARES = {"fp32": 0.8, "tf32": 0.55, "half": 0.55, "fp8": 0.45}
_CPU_SHARE = 0.9
# GFLOP/s that a core reaches in large products of float32: measured on shared cores of Xeons with AMX and of EPYCs.
_CORE_FP32 = {"amx_bf16": 62.0, "avx512_bf16": 80.0, "avx512f": 62.0, "avx2": 40.0, "": 11.0}
# And of bfloat16; AMX: a Xeon 8480+ in MLPerf Training 3.1.
_CORE_HALF = {"amx_bf16": 270.0, "avx512_bf16": 190.0, "bf16": 55.0}
_CORE_BANDWIDTH, _SOCKET_BANDWIDTH = 20.0, 200.0
"""GB/s that a core moves, as many as its memory has at most."""
_CORE_LINK, _CORE_WATTS = 4.0, 6.0
"""GB/s to the ranks beside, and watts, of a core."""


@dataclass(frozen=True)
class Device:
    """One GPU, or all cores of a processor that one rank uses."""

    name: str
    memory: float
    """Bytes; 0: not known."""
    speeds: Mapping[str, float]
    """Operations a second that its products can reach, by unit: fp32, tf32, half, fp8; what it has no unit for is not
    there."""
    shares: Mapping[str, float]
    """Share of these that large products in a network reach."""
    bandwidth: float
    """Of its memory (bytes a second)."""
    link: float
    """To its neighbours in one machine, one direction (bytes a second)."""
    watts: float
    """At full work."""
    bf16: bool = True
    """Whether its units for half precision take bfloat16."""

    @property
    def gpu(self) -> bool:
        """Whether it is a GPU."""
        return self.name != CPU

    @property
    def room(self) -> float:
        """Bytes that a micro-batch may take: of a GPU whose memory is not known those of the smallest one."""
        return self.memory or gpu_named(SMALLEST).memory

    def fits(self, needed: float) -> bool:
        """Whether so many bytes fit, as far as is known."""
        return not self.memory or needed <= self.memory

    def has(self, precision: str) -> bool:
        """Whether it has units for a precision of a recipe."""
        return UNITS[precision] in self.speeds and (self.bf16 or precision != "bf16")

    def speed(self, precision: str) -> float:
        """Operations a second of large products in a network; those of float32 where it has no such unit."""
        unit = UNITS[precision] if self.has(precision) else "fp32"
        return self.speeds[unit] * self.shares[unit]


@cache
def gpus() -> dict[str, tuple[str, Device]]:
    """Every GPU that is known by its name, with what its driver calls it."""
    table = tomllib.loads(files("bertwright.plan").joinpath("devices.toml").read_text(encoding="utf-8"))
    return {name: (str(row["driver"]), _gpu(name, row)) for name, row in table.items()}


def gpu_named(name: str) -> Device:
    """The GPU of that name; `RecipeError` names the others where there is none."""
    if name not in gpus():
        near = difflib.get_close_matches(name.lower(), gpus(), n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Those known are {', '.join(gpus())}."
        raise RecipeError(f"{name!r} is no GPU that is known here. {hint}")
    return gpus()[name][1]


def gpu_of_driver(name: str, memory: float) -> Device | None:
    """The GPU that a driver calls so, with the memory that it says; None where it is not known."""
    for words, device in gpus().values():
        # As a word, or with letters about it (A10G, GB200): an A1000 is no A10.
        if set(words.split()) <= set(name.replace("-", " ").split()) or re.search(rf"{re.escape(words)}(?!\d)", name):
            return replace(device, memory=memory)
    return None


def processor(cores: int, memory: float) -> Device:
    """A processor of this machine's kind with so many cores for training, and bytes of memory."""
    flags = processor_flags()
    fp32 = next(speed for flag, speed in _CORE_FP32.items() if not flag or flag in flags)
    halves = [speed for flag, speed in _CORE_HALF.items() if flag in flags]
    speeds = {"fp32": fp32, **({"half": halves[0], "tf32": halves[0] / 2} if halves else {})}
    return Device(
        CPU,
        memory,
        {unit: cores * speed * 1e9 for unit, speed in speeds.items()},
        dict.fromkeys(speeds, _CPU_SHARE),
        bandwidth=min(cores * _CORE_BANDWIDTH, _SOCKET_BANDWIDTH) * 1e9,
        link=cores * _CORE_LINK * 1e9,
        watts=cores * _CORE_WATTS,
    )


def _gpu(name: str, row: Mapping[str, float]) -> Device:
    speeds = {unit: float(row[unit]) * 1e12 for unit in _GPU_SHARES if unit in row}
    shares = {unit: _GPU_SHARES[unit] for unit in speeds}
    giga = {key: float(row[key]) * 1e9 for key in ("memory_gb", "bandwidth", "link")}
    return Device(
        name,
        giga["memory_gb"],
        speeds,
        shares,
        giga["bandwidth"],
        giga["link"],
        float(row["watts"]),
        bool(row.get("bf16", True)),
    )
