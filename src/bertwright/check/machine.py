"""What this machine has, read without importing torch."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from bertwright.core.processor import processor_flags

# From cuda.h: CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
_MAJOR_MINOR = (75, 76)


@dataclass(frozen=True)
class TorchBuild:
    """The torch that is installed."""

    version: str
    """Such as "2.13.0+cpu"; "" where there is none."""
    accelerated: bool
    """Whether it can use a GPU (CUDA or ROCm)."""


@cache
def torch_build() -> TorchBuild:
    """The installed torch, by what it says of itself in `torch/version.py`."""
    # A check never imports torch; what it needs of it stands in a file of text.
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
    """Bytes of memory of each GPU that may be used, as NVIDIA's driver reports them; () where there is no driver.

    Without torch only the presence of an AMD GPU is known: its memory is given as 0.
    """
    try:
        # By the driver, which says what CUDA_VISIBLE_DEVICES leaves, and without torch.
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
    """What NVIDIA's driver calls each GPU that may be used, such as "NVIDIA H100 80GB HBM3"; () where it sees none."""
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
    """The compute capability of the first GPU, such as (9, 0), as NVIDIA's driver reports it; None where it says none.

    A training runs on the first one.
    """
    if not any(gpu_memory()):  # no GPU, or one of AMD's
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


def bf16_units() -> tuple[str, ...]:
    """The instruction sets of this processor that multiply bfloat16, as Linux names them; () where none is known."""
    return tuple(unit for unit in ("amx_bf16", "avx512_bf16", "bf16", "svebf16") if unit in processor_flags())


def disk_free(folder: Path) -> int:
    """Bytes that may still be written where `folder` is, or will be."""
    # The folder of a run may not be there yet: its disk is that of the nearest one that is.
    return shutil.disk_usage(next(path for path in (folder, *folder.absolute().parents) if path.exists())).free
