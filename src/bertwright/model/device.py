"""Where a model runs, and what torch is told for the length of a training."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch

from bertwright.core.errors import RecipeError
from bertwright.model.allocator import keep_freed_memory


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
def torch_settings(threads: int) -> Iterator[None]:
    """Deterministic algorithms and so many processor threads (0: torch's own choice), for the length of the block."""
    # oneDNN keeps a kernel for each of the last 1,024 shapes it met. Packed batches have a new shape at every step, so
    # it never meets one again: without the cache a step is a tenth faster and memory stays flat (docs/results.md).
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "0")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what cuBLAS needs to be deterministic
    keep_freed_memory()
    before = torch.are_deterministic_algorithms_enabled(), torch.get_num_threads()
    filled = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    # A resumed run ends bit-identical to an undisturbed one; a kernel that adds in any order would break that.
    torch.use_deterministic_algorithms(True)
    # Else torch fills each of some 200 fresh tensors a step with NaN before a kernel writes them: 3 to 11 % of a step.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.set_num_threads(threads or before[1])
    try:
        yield
    finally:
        # The process may be a notebook of the user's, with settings of its own.
        torch.use_deterministic_algorithms(before[0])
        torch.utils.deterministic.fill_uninitialized_memory = filled  # type: ignore[attr-defined]
        torch.set_num_threads(before[1])
