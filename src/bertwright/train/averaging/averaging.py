"""Averages of the weights over training, and the choice of the one that a run keeps.

An average depends only on the weights, which all ranks have, so it is the same for any number of ranks. It never
affects training: checkpoints hold it besides the weights, and training continues as it would without it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol, assert_never

import torch
from torch import Tensor

from bertwright.core.errors import CheckpointError, RecipeError
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
            # From the lengths, not the ends: moving `end_after` while training runs must not change the average.
            return Ema(config.decay, config.start * sum(phase.schedule_steps for phase in phases))
        case LastConfig():
            if config.every > (total_steps := sum(phase.steps for phase in phases)):
                raise RecipeError(
                    f"train.averaging.every {config.every:,} is more than the {total_steps:,} steps of all phases, so "
                    "there would be nothing to average; lower it"
                )
            return Last(config.count, config.every)
        case _:
            assert_never(config)


UPDATES = "updates"
"""The name of the number of updates among the averaged tensors; theirs contain a dot."""


class Ema:
    """The exponential moving average, starting as the weights of the first step at or after `start`.

    After each applied update: average ← d · average + (1 - d) · weights. The nth update has
    d = min(decay, (1 + n) / (10 + n)), as in TensorFlow's ExponentialMovingAverage: with a constant decay of 0.999, the
    weights that the average starts from would be 95 % of it after 50 updates, and 37 % after 1,000.
    """

    def __init__(self, decay: float, start: float) -> None:
        self.decay, self.start = decay, start
        self._averages: dict[str, Tensor] = {}
        self._updates = 0

    @torch.no_grad()
    def after(self, weights: Mapping[str, Tensor], step: int, applied: bool) -> None:
        """As `Averaging.after`, for tensors of any shape; a step without an update leaves the average unchanged."""
        if not self._averages and step >= self.start:
            self._averages = {name: tensor.detach().clone() for name, tensor in weights.items()}
        elif self._averages and applied:
            self._updates += 1
            for name, average in self._averages.items():
                average.lerp_(weights[name], 1 - self._kept(self._updates))

    def average(self) -> dict[str, Tensor]:
        """As `Averaging.average`."""
        return self._averages

    def description(self) -> str:
        """As `Averaging.description`."""
        first = math.prod(self._kept(update) for update in range(1, self._updates + 1))
        share = "less than 0.01 %" if first < 1e-4 else f"{100 * first:.2f} %"
        return f"an exponential moving average over {self._updates:,} updates, {share} of it the weights it began with"

    def state(self) -> dict[str, Tensor]:
        """As `Averaging.state`: the average by the names of the weights, and the number of its updates."""
        return {**self._averages, UPDATES: torch.tensor(self._updates)} if self._averages else {}

    def load(self, state: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
        """As `Averaging.load`, for tensors of any shape."""
        if state:  # empty if the checkpoint precedes the average's first step
            _check_tensors(state, {**weights, UPDATES: torch.tensor(0)})
        self._updates = int(state.get(UPDATES, 0))
        averages = {name: tensor for name, tensor in state.items() if name != UPDATES}
        self._averages = {name: torch.empty_like(weights[name]).copy_(tensor) for name, tensor in averages.items()}

    def _kept(self, update: int) -> float:
        """Return the share of the average that an update, counted from 1, keeps."""
        return min(self.decay, (1 + update) / (10 + update))


class Last:
    """The mean of the weights at the newest steps of a fixed interval (Kaddour 2022, "Stop wasting my time!", LAWA).

    Complete copies are kept in host memory, so the end of training need not be known in advance.
    """

    def __init__(self, count: int, every: int) -> None:
        self.count, self.every = count, every
        self._kept: dict[int, dict[str, Tensor]] = {}

    @torch.no_grad()
    def after(self, weights: Mapping[str, Tensor], step: int, applied: bool) -> None:
        """As `Averaging.after`, for tensors of any shape; keeps a copy at each interval even if no update was
        applied."""
        if step % self.every == 0:
            self._kept[step] = {name: tensor.detach().to("cpu", copy=True) for name, tensor in weights.items()}
            for old in sorted(self._kept)[: -self.count]:
                del self._kept[old]

    def average(self) -> dict[str, Tensor]:
        """As `Averaging.average`: summed in float64, in step order."""
        copies = [self._kept[step] for step in sorted(self._kept)]
        names = copies[0] if copies else {}
        return {name: torch.stack([copy[name] for copy in copies]).double().mean(0).to(names[name]) for name in names}

    def description(self) -> str:
        """As `Averaging.description`."""
        return f"the mean of the weights after steps {', '.join(f'{step:,}' for step in sorted(self._kept))}"

    def state(self) -> dict[str, Tensor]:
        """As `Averaging.state`: `STEP.NAME` for each tensor of each copy."""
        return {f"{step}.{name}": tensor for step, copy in self._kept.items() for name, tensor in copy.items()}

    def load(self, state: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
        """As `Averaging.load`, for tensors of any shape."""
        kept: dict[int, dict[str, Tensor]] = {}
        for key, tensor in state.items():
            step, _, name = key.partition(".")
            if not step.isdecimal():
                raise CheckpointError(
                    f"{key} is not a tensor of an average. Restore the checkpoint, or take an older one."
                )
            # A copy: the tensor is backed by a file of a checkpoint that is later pruned, or may vanish with its disk.
            kept.setdefault(int(step), {})[name] = tensor.clone()
        for copy in kept.values():
            _check_tensors(copy, weights)
        self._kept = kept


def _check_tensors(state: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
    """Raise `CheckpointError` unless `state` has exactly one tensor for each of the weights, of the same shape."""
    found = {name: list(tensor.shape) for name, tensor in state.items()}
    wanted = {name: list(tensor.shape) for name, tensor in weights.items()}
    if wrong := [name for name in sorted(found.keys() | wanted.keys()) if found.get(name) != wanted.get(name)]:
        raise CheckpointError(
            f"the average of the weights in this checkpoint belongs to another network: {wrong[0]} is "
            f"{found.get(wrong[0], 'absent')} there and {wanted.get(wrong[0], 'absent')} here. Restore the "
            "checkpoint, or take an older one."
        )
