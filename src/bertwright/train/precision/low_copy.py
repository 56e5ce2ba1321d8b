"""Low-precision weights with a float32 master (Micikevicius et al. 2018 §3.1).

The original network keeps its weights in float32: the optimizer updates them, and checkpoints, averages and exports use
them. A low-precision copy computes: its weights are rounded from the master's at every step, and its gradients are
added to the master's, in float32, as soon as each is available.
"""

from __future__ import annotations

from copy import deepcopy
from functools import partial

import torch
from torch import Tensor, nn

from bertwright.model.model import Model


class LowCopy:
    """A copy of `master` whose parameters and computations have dtype `dtype`."""

    def __init__(self, master: Model, dtype: torch.dtype) -> None:
        self.network = deepcopy(master).to(dtype)
        self._masters = [p.detach() for p in master.parameters()]
        self._copies = [p.detach() for p in self.network.parameters()]
        for copy, original in zip(self.network.parameters(), master.parameters(), strict=True):
            copy.register_post_accumulate_grad_hook(partial(_hand_over, original))  # type: ignore[no-untyped-call]

    def refreshed(self) -> Model:
        """Return the copy that computes, with weights rounded from the current weights of its master."""
        torch._foreach_copy_(self._copies, self._masters)
        return self.network


def _hand_over(original: nn.Parameter, copy: Tensor) -> None:
    """Add the copy's gradient, of any shape, to the original's."""
    # Immediately and in float32: low-precision sums over micro-batches would lose small gradients, and a delay would
    # keep two copies.
    gradient, copy.grad = copy.grad, None
    assert gradient is not None
    original.grad = gradient.to(original.dtype) if original.grad is None else original.grad.add_(gradient)
