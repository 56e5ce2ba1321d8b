"""Interface of engines, and the choice of the one that a run uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, assert_never

from torch import Tensor

from bertwright.core.errors import RecipeError
from bertwright.model.model import Model
from bertwright.optim.config import OptimConfig
from bertwright.train.engine.chosen_rows import Rows
from bertwright.train.engine.config import (
    AutoConfig,
    DdpConfig,
    DeepSpeedConfig,
    EngineConfig,
    FsdpConfig,
    SingleConfig,
    ZeroConfig,
    resolve_engine,
    wrong_ranks,
)
from bertwright.train.engine.ds_config import Step
from bertwright.train.engine.single import Single
from bertwright.train.ranks.ranks import Ranks


class Root(Protocol):
    """Starting point of a backward pass: a loss, or an object that has another program run the pass."""

    def backward(self) -> None:
        """Add the gradients to those of this step."""


class Engine(Protocol):
    """Holds the weights and the optimizer state of one rank, complete or sharded."""

    @property
    def has_full_weights(self) -> bool:
        """Whether each rank holds all weights; if not, all ranks must make every forward pass together."""

    def root(self, loss: Tensor, last: bool = True) -> Root:
        """Return the starting point of the backward pass of a micro-batch's loss, a scalar; the caller runs the pass at
        once.

        `last`: this is the last micro-batch of the step, so gradients may be sent as soon as they are available.
        """

    def reduce(self, loss_scale: float = 1.0) -> Tensor:
        """Sum the gradients over all ranks, undo the loss scale, and clip; all ranks must call this together.

        Returns the global norm before clipping, a scalar in float64 on the device: reading it waits for the device.
        """

    def update(self, learning_rate: float) -> None:
        """Update the weights with the reduced gradients; called on all ranks, or on none if the step is dropped."""

    def restart_steps(self) -> None:
        """Restart the update count at 0 and keep the moments: NVIDIA's hand-over from phase to phase."""

    def train_rows(self, rows: Rows | None) -> None:
        """Train only these rows of these tensors from now on, or everything again; moments of what is trained before
        and after are kept. All ranks must call this together. Raises `RecipeError` if the engine cannot."""

    def gather(self, own: bool = False) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return complete weights and complete optimizer state by name, at least on rank 0; all ranks must call this
        together.

        `own`: return only the complete tensors that this rank writes (`partition.Share`); each tensor belongs to one
        rank.
        """

    def load(self, moments: Mapping[str, Tensor], weights: Mapping[str, Tensor] | None = None) -> None:
        """Restore what `gather` returned, the same on all ranks; without `weights`, keep the current ones.

        Tensors may be backed by a file, so an engine reads only its own part of each, and copies it to its place.
        Raises `CheckpointError` if the moments are not of this network.
        """


def build_engine(
    config: EngineConfig, model: Model, optim: OptimConfig, ranks: Ranks, step: Step | None = None
) -> Engine:
    """Return the engine of `config`, which takes over a model with its initial weights, the same on all ranks.

    `step` describes the recipe's steps to packages that need it. Raises `RecipeError` for what is not supported with
    these ranks. Gradients are clipped to the global norm `optim.max_grad_norm`; 0 disables clipping.
    """
    if wrong := wrong_ranks(config, ranks.world):
        raise RecipeError(f"train.engine: {wrong}.")
    config = resolve_engine(config, ranks.world)
    match config:
        case SingleConfig() | AutoConfig():
            return Single(model, optim)
        # Each module is imported only if it is chosen.
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
