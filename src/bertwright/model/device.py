"""Where a model runs."""

from __future__ import annotations

from typing import Literal

import torch

from bertwright.core.errors import RecipeError


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
    found = (torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count()))
    return [f"{gpu.name} ({gpu.total_memory / 1e9:.0f} GB)" for gpu in found]
