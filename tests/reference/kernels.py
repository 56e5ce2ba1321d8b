"""The attention kernels by where they run."""

from typing import get_args

from bertwright.model.config import Kernel

ON_GPUS: tuple[Kernel, ...] = ("varlen", "triton")
"""These need a GPU (`tests/gpu`), or for `triton` an interpreter (`tests/kernels`)."""
KERNELS: tuple[Kernel, ...] = tuple(kernel for kernel in get_args(Kernel) if kernel not in ON_GPUS)
"""These run on any device and in any precision."""
