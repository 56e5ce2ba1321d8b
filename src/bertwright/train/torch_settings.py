"""What torch is told for the length of a training: deterministic algorithms and the number of threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def torch_settings(threads: int) -> Iterator[None]:
    """Deterministic algorithms and so many processor threads (0: torch's own choice), for the length of the block."""
    # oneDNN keeps a kernel for each of the last 1,024 shapes it met. Packed batches have a new shape at every step, so
    # it never meets one again: without the cache a step is a tenth faster and memory stays flat (docs/results.md).
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "0")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what cuBLAS needs to be deterministic
    before = torch.are_deterministic_algorithms_enabled(), torch.get_num_threads()
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(threads or before[1])
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        torch.set_num_threads(before[1])
