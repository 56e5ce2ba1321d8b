"""The device of a model, torch's global settings during a training, and how the C library treats freed memory."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

import torch

from bertwright.core.errors import RecipeError
from bertwright.core.numbers import size_of

# From malloc.h of the GNU C library; the values are part of its binary interface.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -2, -3, -4
_NEVER = 2**31 - 1
_AHEAD = 1 << 26
_MANY = 65_536
"""The library's own limit of blocks outside the heap."""
_LARGE = 4 << 20
"""Bytes of the blocks that are returned one by one. With smaller ones, a step takes longer and its peak is the same."""


def keep_freed_memory() -> bool:
    """Make the C library keep freed memory in the process for later tensors; returns whether it supports that.

    The GNU library returns blocks above 32 MB to the system immediately and requests them again, zeroed page by page,
    at the next step: with a vocabulary of 30,522, that is half the time of the loss. The memory kept is about that of
    the largest step.
    """
    return _set((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _NEVER), (_TOP_PAD, _AHEAD))


def return_freed_memory() -> bool:
    """Make the C library return the memory of large freed tensors immediately; returns whether it supports that.

    With activation checkpointing, whose layers are computed once more between tensors that stay, the memory kept
    otherwise grows to twice what is in use at the peak (docs/results.md).
    """
    return _set((_MMAP_MAX, _MANY), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _LARGE), (_TOP_PAD, 0))


def _set(*wanted: tuple[int, int]) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(option, value) == 1 for option, value in wanted)


Products = Literal["highest", "high", "medium"]
"""Precision of float32 matrix products, in torch's terms."""
# oneDNN reads the first at its first product in a process (primitive_cache.cpp), cuBLAS the second when it creates its
# handle.
_KERNELS, _WORKSPACE = "ONEDNN_PRIMITIVE_CACHE_CAPACITY", "CUBLAS_WORKSPACE_CONFIG"


def resolve_device(wanted: Literal["auto", "cpu", "cuda"]) -> torch.device:
    """Return the device for a recipe's `device` key: `auto` is a GPU if torch sees one, otherwise the CPU.

    Raises `RecipeError` if a GPU is requested and torch sees none.
    """
    seen = torch.cuda.is_available()
    if wanted == "cuda" and not seen:
        raise RecipeError(
            "device = cuda, but torch finds no GPU here. Install a CUDA build of torch, or set the key to cpu or auto."
        )
    return torch.device("cuda" if seen and wanted != "cpu" else "cpu")


def visible_gpus() -> list[str]:
    """Return name and memory of each GPU that torch sees, such as "NVIDIA H100 80GB HBM3 (85 GB)"."""
    if not torch.cuda.is_available():
        return []
    gpus = (torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count()))
    return [f"{gpu.name} ({size_of(gpu.total_memory)})" for gpu in gpus]


@contextmanager
def torch_settings(
    threads: int,
    keep_kernels: bool = False,
    deterministic: bool = True,
    products: Products = "highest",
    spare_memory: bool = False,
) -> Iterator[None]:
    """Use deterministic algorithms and `threads` CPU threads (0: torch's default) within the block.

    `keep_kernels` says whether shapes repeat, so that kernels compiled by oneDNN are worth caching. oneDNN reads this
    setting once, at its first product in a process, and torch has no function to change it later: in a process that
    trains twice, or has used torch before, the first product decides. Results are the same either way, but the second
    training is slower or its memory grows; one process per training avoids that. Without `deterministic`, torch may use
    kernels that add in any order, and two runs may differ in their bits. `products` overrides the precision of float32
    matrix products: `highest` uses full float32, `high` lets a GPU round factors to 10 mantissa bits (tf32), `medium`
    lets a CPU round factors to bfloat16 (bf32). `spare_memory` returns the memory of freed tensors to the system;
    without it, the process keeps it for later ones. Either stays in force after the block.
    """
    environment = {name: os.environ.get(name) for name in (_KERNELS, _WORKSPACE)}
    # oneDNN caches a kernel for each of the last 1,024 shapes. Packed batches have a new shape at every step, so no
    # kernel is reused: without the cache, a step is a tenth faster and memory stays flat (docs/results.md).
    if not keep_kernels:
        os.environ.setdefault(_KERNELS, "0")
    if deterministic:
        os.environ.setdefault(_WORKSPACE, ":4096:8")  # cuBLAS needs this to be deterministic
    (return_freed_memory if spare_memory else keep_freed_memory)()
    before = torch.get_deterministic_debug_mode(), torch.get_num_threads()
    filled = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    # A resumed run must end bit-identical to an uninterrupted one; a kernel that adds in any order would break that.
    _set_deterministic(2 if deterministic else 0)
    # Otherwise torch fills about 200 new tensors per step with NaN before a kernel writes them: 3 to 11 % of a step.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(products)
    torch.set_num_threads(threads or before[1])
    try:
        yield
    finally:
        # The process may be the user's notebook, with its own settings.
        _set_deterministic(before[0])
        torch.utils.deterministic.fill_uninitialized_memory = filled  # type: ignore[attr-defined]
        torch.set_float32_matmul_precision(precision)
        torch.set_num_threads(before[1])
        _restore(environment)


def _set_deterministic(mode: int) -> None:
    """Allow (0), warn about (1) or reject (2) algorithms that are not deterministic.

    `torch.use_deterministic_algorithms` imports torch's compiler to configure it, which takes a second of CPU time at
    each start. If the compiler is not loaded yet, `graph.run_as` configures it later.
    """
    if "torch._inductor.config" in sys.modules:
        torch.use_deterministic_algorithms(mode > 0, warn_only=mode == 1)
    else:
        torch.set_deterministic_debug_mode(mode)


def _restore(environment: Mapping[str, str | None]) -> None:
    """Restore environment variables to their previous values; None: the variable was not set."""
    for name, value in environment.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
