"""The attention kernels by where they run."""

from typing import get_args

from bertwright.model.config import Kernel

ON_GPUS: tuple[Kernel, ...] = ("varlen",)
"""These need a GPU, and low precision: `tests/gpu/test_varlen.py`."""
KERNELS: tuple[Kernel, ...] = tuple(kernel for kernel in get_args(Kernel) if kernel not in ON_GPUS)
"""These run on any device and in any precision."""
