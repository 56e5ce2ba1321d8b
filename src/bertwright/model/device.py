"""Where a model runs, and what torch is told for the length of a training."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

import torch

from bertwright.core.errors import RecipeError

Products = Literal["highest", "high", "medium"]
"""How exactly float32 matrices are multiplied, in torch's words."""
# From malloc.h of the GNU C library; their values are part of its binary interface.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_NEVER = 2**31 - 1
_AHEAD = 1 << 26
# oneDNN reads the first when it multiplies first in a process (primitive_cache.cpp), cuBLAS the second with its handle.
_KERNELS, _WORKSPACE = "ONEDNN_PRIMITIVE_CACHE_CAPACITY", "CUBLAS_WORKSPACE_CONFIG"


def resolve_device(wanted: Literal["auto", "cpu", "cuda"]) -> torch.device:
    """The device of a recipe's `device` key: `auto` is a GPU where torch sees one, else the CPU.

    Raises `RecipeError` where a GPU is asked for and torch sees none.
    """
    seen = torch.cuda.is_available()
    if wanted == "cuda" and not seen:
        raise RecipeError(
            "device = cuda, but torch sees no GPU here. Install a CUDA build of torch, or set the key to cpu or auto."
        )
    return torch.device("cuda" if seen and wanted != "cpu" else "cpu")


def visible_gpus() -> list[str]:
    """Name and memory of each GPU that torch sees, such as "NVIDIA H100 80GB HBM3 (85 GB)"."""
    if not torch.cuda.is_available():
        return []
    gpus = (torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count()))
    return [f"{gpu.name} ({gpu.total_memory / 1e9:.0f} GB)" for gpu in gpus]


@contextmanager
def torch_settings(
    threads: int, keep_kernels: bool = False, deterministic: bool = True, products: Products = "highest"
) -> Iterator[None]:
    """Deterministic algorithms and so many processor threads (0: torch's own choice), for the length of the block.

    `keep_kernels` says whether shapes repeat, so that what oneDNN compiles for one is worth keeping. oneDNN asks that
    once, at its first product in a process, and torch hands out no function of it that would change it later: in a
    process that trains twice, or has computed with torch before, the first product decides. Numbers are the same either
    way; the second training is slower, or its memory grows. One process for each training avoids that. Without
    `deterministic` torch may take kernels that add in any order, and no two runs have the same bits. `products` says
    how float32 matrices are multiplied, whoever asked otherwise before: `highest` as they are, `high` with factors that
    a GPU rounds to 10 bits after the point (tf32), `medium` with factors that a processor rounds to bfloat16 (bf32).
    """
    environment = {name: os.environ.get(name) for name in (_KERNELS, _WORKSPACE)}
    # oneDNN keeps a kernel for each of the last 1,024 shapes it met. Packed batches have a new shape at every step, so
    # it never meets one again: without the cache a step is a tenth faster and memory stays flat (docs/results.md).
    if not keep_kernels:
        os.environ.setdefault(_KERNELS, "0")
    if deterministic:
        os.environ.setdefault(_WORKSPACE, ":4096:8")  # what cuBLAS needs to be deterministic
    keep_freed_memory()
    before = torch.get_deterministic_debug_mode(), torch.get_num_threads()
    filled = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    # A resumed run ends bit-identical to an undisturbed one; a kernel that adds in any order would break that.
    _set_deterministic(2 if deterministic else 0)
    # Else torch fills each of some 200 fresh tensors a step with NaN before a kernel writes them: 3 to 11 % of a step.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(products)
    torch.set_num_threads(threads or before[1])
    try:
        yield
    finally:
        # The process may be a notebook of the user's, with settings of its own.
        _set_deterministic(before[0])
        torch.utils.deterministic.fill_uninitialized_memory = filled  # type: ignore[attr-defined]
        torch.set_float32_matmul_precision(precision)
        torch.set_num_threads(before[1])
        _restore(environment)


def _set_deterministic(mode: int) -> None:
    """Let algorithms be as they are (0), or warn of (1) or refuse (2) those that are not deterministic.

    `torch.use_deterministic_algorithms` loads torch's compiler to tell it, a second of a processor at each start. What
    is not loaded is told when it is, by `graph.run_as`.
    """
    if "torch._inductor.config" in sys.modules:
        torch.use_deterministic_algorithms(mode > 0, warn_only=mode == 1)
    else:
        torch.set_deterministic_debug_mode(mode)


def _restore(environment: Mapping[str, str | None]) -> None:
    """Give variables the values they had; None: they were not there."""
    for name, value in environment.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def keep_freed_memory() -> bool:
    """Have freed memory stay with the process, for its next tensors; whether the C library can.

    The GNU library gives blocks above 32 MB back to the system at once, and fetches them again, zeroed page by page, at
    the next step: at a vocabulary of 30,522 that is half the time of the loss. What stays is about the memory of the
    largest step.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    wanted = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _NEVER), (_TOP_PAD, _AHEAD))
    return mallopt is not None and all(mallopt(option, value) == 1 for option, value in wanted)
