"""What compiling a network needs besides torch; checked before work starts, so without importing torch."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec


def missing_compiler(device_type: str) -> str:
    """Return what is missing on this machine to compile for a device, cuda or cpu; "" if nothing."""
    if device_type == "cuda":
        return "" if find_spec("triton") else "Triton, which torch for GPUs comes with (pip install triton)"
    compiler = os.environ.get("CXX", "g++")
    return "" if shutil.which(compiler) or shutil.which("clang++") else f"a C++ compiler ({compiler})"
