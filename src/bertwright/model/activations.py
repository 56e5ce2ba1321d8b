"""What an encoder layer of a family keeps for its backward pass, per token, besides attention. Does not import torch.

Each family states its numbers in its network's configuration; `train.pass_sizes` forecasts memory from them. They were
counted from the tensors that autograd saves, as float32.
"""

from __future__ import annotations

from typing import NamedTuple


class Activations(NamedTuple):
    """Numbers per token of one layer. Those of attention depend on the kernel and are not among them."""

    feed_forward: float
    """Kept by the feed-forward layer between its two linear maps."""
    others: float
    """Kept by everything else."""
    masks: float
    """Elements of the dropout masks, where the network has dropout; a fused kernel keeps one byte of each."""
