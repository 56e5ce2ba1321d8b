"""Interface of weight averages, and the choice of the one that a run keeps.

An average depends only on the weights, which all ranks have, so it is the same for any number of ranks. It never
affects training: checkpoints hold it besides the weights, and training continues as it would without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, assert_never

from torch import Tensor

from bertwright.core.errors import RecipeError
from bertwright.train.averaging.config import AveragingConfig, EmaConfig, LastConfig, NoAveragingConfig
from bertwright.train.settings.phases import Phase


class Averaging(Protocol):
    """Follows the weights, tensors of any shape by name, from step to step."""

    def after(self, weights: Mapping[str, Tensor], step: int, applied: bool) -> None:
        """Process the weights after `step`, counted over all phases; `applied` is False if no update was applied."""

    def average(self) -> dict[str, Tensor]:
        """Return the averaged weights by name, in their shapes; empty before the average has begun."""

    def description(self) -> str:
        """Say of which weights the average consists, as a noun phrase."""

    def state(self) -> dict[str, Tensor]:
        """Return everything that a checkpoint must keep of the average, by name."""

    def load(self, state: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
        """Restore what `state` returned, for a network with these weights; raise `CheckpointError` if it is of another
        network."""


def build_averaging(config: AveragingConfig, phases: Sequence[Phase]) -> Averaging | None:
    """Return the average of `config` over a training of these phases; None if the last weights are the result.

    Raises `RecipeError` if there would be nothing to average.
    """
    match config:
        case NoAveragingConfig():
            return None
        case EmaConfig():
            from bertwright.train.averaging.ema import Ema

            # From the lengths, not the ends: moving `end_after` while training runs must not change the average.
            return Ema(config.decay, config.start * sum(phase.schedule_steps for phase in phases))
        case LastConfig():
            from bertwright.train.averaging.last import Last

            if config.every > (total_steps := sum(phase.steps for phase in phases)):
                raise RecipeError(
                    f"train.averaging.every {config.every:,} is more than the {total_steps:,} steps of all phases, so "
                    "there would be nothing to average; lower it"
                )
            return Last(config.count, config.every)
        case _:
            assert_never(config)
