"""What a machine has that a recipe is checked for; of this one, it is read without importing torch."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from bertwright.core.resources import processor_flags
from bertwright.recipe import Recipe

# From cuda.h: CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
_MAJOR_MINOR = (75, 76)


@dataclass(frozen=True)
class TorchBuild:
    """The installed torch."""

    version: str
    """Version, such as "2.13.0+cpu"; "" if torch is not installed."""
    accelerated: bool
    """Whether it can use a GPU (CUDA or ROCm)."""


@dataclass(frozen=True)
class OtherMachine:
    """What is known of the machines of a place, instead of this one: what a file can state about them."""

    title: str
    """Human-readable name, such as "8 x a100"."""
    gpu: bool
    """Whether its ranks train on GPUs."""
    capability: tuple[int, int] | None
    """Compute capability of its GPUs; None if unknown or without GPUs."""
    memory: float
    """Bytes of memory of each rank's GPU, or of its share of the machine without GPUs; 0 if unknown."""
    each: int
    """Ranks on each machine."""
    cores: int
    """Cores of each machine."""
    ranks: int
    """Training processes on all machines."""


@cache
def torch_build() -> TorchBuild:
    """Return the installed torch, read from its `torch/version.py`."""
    # A check never imports torch; what it needs is in a text file.
    spec = find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return TorchBuild("", False)
    try:
        text = (Path(spec.submodule_search_locations[0]) / "version.py").read_text(encoding="utf-8")
    except OSError:
        return TorchBuild("", False)
    values = dict(re.findall(r"^(__version__|cuda|hip)\b[^=\n]*= *['\"]([^'\"]+)['\"]", text, re.MULTILINE))
    return TorchBuild(values.get("__version__", ""), bool({"cuda", "hip"} & values.keys()))


@cache
def gpu_memory() -> tuple[int, ...]:
    """Return the bytes of memory of each usable GPU, as NVIDIA's driver reports them; () without a driver.

    Without torch, only the presence of an AMD GPU can be detected: its memory is reported as 0.
    """
    try:
        # The driver respects CUDA_VISIBLE_DEVICES, and needs no torch.
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return (0,) if os.path.exists("/dev/kfd") else ()
    count, device, size = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return ()
    sizes = []
    for number in range(count.value):
        if driver.cuDeviceGet(ctypes.byref(device), number) == 0:
            driver.cuDeviceTotalMem_v2(ctypes.byref(size), device)
            sizes.append(size.value)
    return tuple(sizes)


@cache
def gpu_names() -> tuple[str, ...]:
    """Return NVIDIA's name of each usable GPU, such as "NVIDIA H100 80GB HBM3"; () if its driver finds none."""
    if not any(gpu_memory()):
        return ()
    driver, device, text = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.create_string_buffer(256)
    names = []
    for number in range(len(gpu_memory())):
        if driver.cuDeviceGet(ctypes.byref(device), number) or driver.cuDeviceGetName(text, len(text), device):
            return ()
        names.append(text.value.decode("utf-8", "replace"))
    return tuple(names)


@cache
def gpu_capability() -> tuple[int, int] | None:
    """Return the compute capability of the first GPU, such as (9, 0), from NVIDIA's driver; None if unknown.

    Training runs on the first GPU.
    """
    if not any(gpu_memory()):  # no GPU, or an AMD one
        return None
    driver, device, number = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_int()
    found = []
    for attribute in _MAJOR_MINOR:
        if driver.cuDeviceGet(ctypes.byref(device), 0) or driver.cuDeviceGetAttribute(
            ctypes.byref(number), attribute, device
        ):
            return None
        found.append(number.value)
    return found[0], found[1]


def trains_on_gpu(recipe: Recipe, at: OtherMachine | None) -> bool:
    """Return whether training runs on GPUs, here or `at` another machine."""
    return bool(training_gpus(recipe)) if at is None else at.gpu and recipe.train.device != "cpu"


def training_gpus(recipe: Recipe) -> tuple[int, ...]:
    """Return the bytes of memory of each GPU that may train; () if training runs on the CPU."""
    return gpu_memory() if torch_build().accelerated and recipe.train.device != "cpu" else ()


def bf16_units() -> tuple[str, ...]:
    """Return the CPU's instruction sets that multiply bfloat16, by their Linux names; () if none is known."""
    return tuple(unit for unit in ("amx_bf16", "avx512_bf16", "bf16", "svebf16") if unit in processor_flags())


def disk_free(folder: Path) -> int:
    """Return the bytes that can still be written where `folder` is, or will be."""
    # The run folder may not exist yet: its disk is that of the nearest existing parent.
    return shutil.disk_usage(next(path for path in (folder, *folder.absolute().parents) if path.exists())).free
