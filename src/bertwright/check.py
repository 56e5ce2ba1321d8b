"""Facts for `bertwright check`: what this machine offers."""

from __future__ import annotations

import os
import platform
import shutil
from importlib import metadata
from typing import Any


def environment() -> dict[str, Any]:
    """Python, processors, memory, disk, and the packages that matter, without importing them."""
    from bertwright.core.tasks import default_workers

    packages = ("torch", "transformers", "tokenizers", "sentencex", "pycld2", "numpy", "safetensors")
    disk = shutil.disk_usage(".")
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "processors": default_workers(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "disk_free_gb": round(disk.free / 1e9, 1),
        "packages": {name: _version(name) for name in packages},
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "missing: pip install bertwright[hf]" if name == "transformers" else f"missing: pip install {name}"
