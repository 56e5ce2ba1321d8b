"""The exponential moving average: average ← d · average + (1 - d) · weights, after each applied update.

The nth update has d = min(decay, (1 + n) / (10 + n)), as in TensorFlow's ExponentialMovingAverage: with a constant
decay of 0.999, the weights that the average starts from would be 95 % of it after 50 updates, and 37 % after 1,000.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from bertwright.train.averaging.check import check_tensors

UPDATES = "updates"
"""The name of the number of updates among the averaged tensors; theirs contain a dot."""


class Ema:
    """An `Averaging` that starts as the weights of the first step at or after `start`."""

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
            check_tensors(state, {**weights, UPDATES: torch.tensor(0)})
        self._updates = int(state.get(UPDATES, 0))
        averages = {name: tensor for name, tensor in state.items() if name != UPDATES}
        self._averages = {name: torch.empty_like(weights[name]).copy_(tensor) for name, tensor in averages.items()}

    def _kept(self, update: int) -> float:
        """Return the share of the average that an update, counted from 1, keeps."""
        return min(self.decay, (1 + update) / (10 + update))
