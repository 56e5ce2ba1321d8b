"""Chooses the attention kernel that a recipe's training uses on a device. Does not import torch."""

from __future__ import annotations

from bertwright.model.config import Kernel, kernel_for
from bertwright.train.config import TrainConfig


def chosen_kernel(config: TrainConfig, device_type: str) -> Kernel:
    """Return the recipe's kernel; for auto, the one that suits the device (`cpu`, `cuda`), or `padded` if the graph
    needs fixed shapes."""
    if config.attention != "auto":
        return config.attention
    return kernel_for(device_type) if config.graph.kind == "eager" else "padded"
