"""What an engine is, and which one a run takes."""

from __future__ import annotations

import math
from typing import Protocol, assert_never

from torch import Tensor, nn
from torch.optim import Optimizer

from bertwright.train.engine.config import DdpConfig, EngineConfig
from bertwright.train.engine.single import Single, Update
from bertwright.train.ranks import Ranks


class Engine(Protocol):
    """Holds the weights and the optimizer's state, whole or in parts, of one rank among all."""

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of a micro-batch's loss, a scalar, to those of this step."""

    def update(self, learning_rate: float, loss_scale: float = 1.0, norm_limit: float = math.inf) -> Update:
        """Sum the gradients over all ranks, undo the loss scale, clip, and update the weights; all ranks together.

        Where the norm of the sum is not finite, or above `norm_limit`, nothing is updated.
        """

    def gather(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The whole weights and the whole state of the optimizer by name, at least on the first rank; all ranks
        together."""


def build_engine(
    config: EngineConfig, model: nn.Module, optimizer: Optimizer, max_grad_norm: float, ranks: Ranks
) -> Engine:
    """The engine of `config`, which takes over a model and an optimizer as they were restored.

    Gradients are clipped to the global norm `max_grad_norm`; 0 clips nothing.
    """
    single = Single(model, optimizer, max_grad_norm)
    match config:
        case DdpConfig():
            if ranks.world == 1:
                return single
            # Not loaded by one process alone, which has nothing to sum.
            from bertwright.train.engine.ddp import DataParallel

            return DataParallel(single, ranks)
        case _:
            assert_never(config)
