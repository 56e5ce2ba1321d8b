"""What an engine is, and which one a run takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, assert_never

from torch import Tensor

from bertwright.core.errors import RecipeError
from bertwright.model.model import Model
from bertwright.optim.config import OptimConfig
from bertwright.train.engine.config import (
    AutoConfig,
    DdpConfig,
    DeepSpeedConfig,
    EngineConfig,
    FsdpConfig,
    SingleConfig,
    ZeroConfig,
    chosen,
    wrong_ranks,
)
from bertwright.train.engine.ds_config import Step
from bertwright.train.engine.single import Single
from bertwright.train.ranks import Ranks


class Root(Protocol):
    """What a backward pass begins at: a loss, or what has another program make the pass."""

    def backward(self) -> None:
        """Add the gradients to those of this step."""


class Engine(Protocol):
    """Holds the weights and the optimizer's state, whole or in parts, of one rank among all."""

    @property
    def whole(self) -> bool:
        """Whether each rank holds all the weights; else all ranks make every forward pass together."""

    def root(self, loss: Tensor, last: bool = True) -> Root:
        """Where the backward pass of a micro-batch's loss, a scalar, begins; the caller makes it at once.

        `last`: no further micro-batch of this step follows, so gradients may be sent as soon as they are known.
        """

    def reduce(self, loss_scale: float = 1.0) -> Tensor:
        """Sum the gradients over all ranks, undo the loss scale, and clip; all ranks together.

        Gives the global norm before clipping, a scalar in float64 on the device: whoever reads it waits for the device.
        """

    def update(self, learning_rate: float) -> None:
        """Move the weights by the reduced gradients; called on all ranks or on none, where the step is dropped."""

    def restart_steps(self) -> None:
        """Count updates from 0 again and keep the moments: NVIDIA's hand-over from phase to phase."""

    def gather(self, own: bool = False) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The whole weights and the whole state of the optimizer by name, at least on the first rank; all ranks
        together. `own`: of whole tensors those that this rank writes (`partition.Share`), each one rank's."""

    def load(self, moments: Mapping[str, Tensor], weights: Mapping[str, Tensor] | None = None) -> None:
        """Go on from what `gather` gave, the same on all ranks; without `weights` from those that there are.

        They may lie in a file, so an engine looks at its own part of a tensor alone, and copies it where it belongs.
        `CheckpointError` where moments are not of this network.
        """


def build_engine(
    config: EngineConfig, model: Model, optim: OptimConfig, ranks: Ranks, step: Step | None = None
) -> Engine:
    """The engine of `config`, which takes over a model with its first weights, the same on all ranks; `step` is what a
    package that wants to know is told of the recipe's steps.

    `RecipeError` for what is not supported with these ranks. Gradients are clipped to the global norm
    `optim.max_grad_norm`; 0 clips nothing.
    """
    if wrong := wrong_ranks(config, ranks.world):
        raise RecipeError(f"train.engine: {wrong}.")
    config = chosen(config, ranks.world)
    match config:
        case SingleConfig() | AutoConfig():
            return Single(model, optim)
        # Each is loaded only where it is chosen.
        case DdpConfig():
            from bertwright.train.engine.ddp import DataParallel

            return DataParallel(Single(model, optim), ranks, config)
        case ZeroConfig():
            from bertwright.train.engine.zero import Zero

            return Zero(Single(model, optim), ranks, config)
        case FsdpConfig():
            from bertwright.train.engine.fsdp import FullySharded

            return FullySharded(model, optim, ranks, config)
        case DeepSpeedConfig():
            from bertwright.train.engine.deepspeed import DeepSpeed

            return DeepSpeed(model, optim, ranks, config, step or Step())
        case _:
            assert_never(config)
