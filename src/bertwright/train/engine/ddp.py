"""Every rank has all weights, and gradients are summed after the last micro-batch."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from bertwright.train.engine.single import Single
from bertwright.train.ranks import Ranks


@dataclass(frozen=True)
class DataParallel:
    """The engine of several ranks, each with a copy of everything; see `Engine`."""

    single: Single
    ranks: Ranks

    def backward(self, loss: Tensor) -> None:
        """As `Engine.backward`; the loss is a scalar."""
        self.single.backward(loss)

    def reduce(self, loss_scale: float = 1.0) -> Tensor:
        """As `Engine.reduce`, a scalar; a rank without sequences takes part in the sum."""
        # Once a step, after the last micro-batch: summing after each would send as much for every one of them.
        self.ranks.all_reduce(self.single.gradients())
        return self.single.reduce(loss_scale)

    def update(self, learning_rate: float) -> None:
        """As `Engine.update`."""
        self.single.update(learning_rate)

    def gather(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """As `Engine.gather`."""
        return self.single.gather()
