"""Weights in low precision, with a float32 master (Micikevicius et al. 2018 §3.1).

The network that was built keeps its weights in float32: the optimizer moves them, and checkpoints, averages and exports
are of them. What computes is a copy in low precision, whose weights are rounded from them at every step, and whose
gradients are added up in theirs, in float32, as soon as each is known.
"""

from __future__ import annotations

from copy import deepcopy
from functools import partial

import torch
from torch import Tensor, nn

from bertwright.model.model import Model


class LowCopy:
    """A copy of `master` whose parameters and computations are of type `dtype`."""

    def __init__(self, master: Model, dtype: torch.dtype) -> None:
        self.network = deepcopy(master).to(dtype)
        self._masters = [p.detach() for p in master.parameters()]
        self._copies = [p.detach() for p in self.network.parameters()]
        for copy, original in zip(self.network.parameters(), master.parameters(), strict=True):
            copy.register_post_accumulate_grad_hook(partial(_hand_over, original))  # type: ignore[no-untyped-call]

    def refreshed(self) -> Model:
        """The network that computes, with the weights that its master has now, rounded."""
        torch._foreach_copy_(self._copies, self._masters)
        return self.network


def _hand_over(original: nn.Parameter, copy: Tensor) -> None:
    """Add the copy's gradient, of any shape, to the original's."""
    # At once and in float32: sums over micro-batches would lose small gradients, and two copies would be kept.
    gradient, copy.grad = copy.grad, None
    assert gradient is not None
    original.grad = gradient.to(original.dtype) if original.grad is None else original.grad.add_(gradient)
