"""Which attention kernel a recipe's training takes on a device. Knows no torch."""

from __future__ import annotations

from bertwright.model.config import Kernel, kernel_for
from bertwright.train.config import TrainConfig


def chosen_kernel(config: TrainConfig, device_type: str) -> Kernel:
    """The recipe's, or the one that suits the device (`cpu`, `cuda`) and the graph, of one shape of batches."""
    if config.attention != "auto":
        return config.attention
    return kernel_for(device_type) if config.graph.kind == "eager" else "padded"
