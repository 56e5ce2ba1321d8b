"""What an engine is, and which one a run takes."""

from __future__ import annotations

from typing import Protocol, assert_never

from torch import Tensor, nn
from torch.optim import Optimizer

from bertwright.train.engine.config import DdpConfig, EngineConfig
from bertwright.train.engine.single import Single
from bertwright.train.ranks import Ranks


class Engine(Protocol):
    """Holds the weights and the optimizer's state, whole or in parts, of one rank among all."""

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of a micro-batch's loss, a scalar, to those of this step."""

    def reduce(self, loss_scale: float = 1.0) -> Tensor:
        """Sum the gradients over all ranks, undo the loss scale, and clip; all ranks together.

        Gives the global norm before clipping, a scalar in float64 on the device: whoever reads it waits for the device.
        """

    def update(self, learning_rate: float) -> None:
        """Move the weights by the reduced gradients; called on all ranks or on none, where the step is dropped."""

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
