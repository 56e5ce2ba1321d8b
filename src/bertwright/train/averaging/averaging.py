"""What an average of the weights is, and which one a run keeps.

An average is a function of the weights alone, which all ranks have, so it is the same on any number of them. It never
touches what is trained: checkpoints hold it beside the weights, and training goes on as it would without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, assert_never

from torch import Tensor

from bertwright.core.errors import RecipeError
from bertwright.train.averaging.config import AveragingConfig, EmaConfig, LastConfig, NoAveragingConfig
from bertwright.train.phases import Phase


class Averaging(Protocol):
    """Follows the weights, tensors of any shape by name, from step to step."""

    def after(self, weights: Mapping[str, Tensor], step: int, applied: bool) -> None:
        """Take note of the weights after `step`, counted over all phases; `applied` is False where none was moved."""

    def average(self) -> dict[str, Tensor]:
        """The averaged weights by name, of their shapes; none before the average has begun."""

    def state(self) -> dict[str, Tensor]:
        """All that a checkpoint has to keep of it, by name."""

    def load(self, state: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
        """Go on from what `state` gave, for a network with these weights; `CheckpointError` where it is of another."""


def build_averaging(config: AveragingConfig, phases: Sequence[Phase]) -> Averaging | None:
    """The average of `config` over a training of these phases; None where the last weights count.

    `RecipeError` where there would be nothing to average.
    """
    match config:
        case NoAveragingConfig():
            return None
        case EmaConfig():
            from bertwright.train.averaging.ema import Ema

            # Of the lengths, not the ends: one that `end_after` moves while training runs must not move the average.
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
