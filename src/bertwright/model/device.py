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
