"""The exponential moving average: average ← decay · average + (1 - decay) · weights, after each applied update."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from bertwright.train.averaging.check import check_tensors


class Ema:
    """An `Averaging` that starts as the weights of the first step at or after `start`."""

    def __init__(self, decay: float, start: float) -> None:
        self.decay, self.start = decay, start
        self._averages: dict[str, Tensor] = {}

    @torch.no_grad()
    def after(self, weights: Mapping[str, Tensor], step: int, applied: bool) -> None:
        """As `Averaging.after`, for tensors of any shape; a step without an update leaves the average unchanged."""
        if not self._averages and step >= self.start:
            self._averages = {name: tensor.detach().clone() for name, tensor in weights.items()}
        elif self._averages and applied:
            for name, average in self._averages.items():
                average.lerp_(weights[name], 1 - self.decay)

    def average(self) -> dict[str, Tensor]:
        """As `Averaging.average`."""
        return self._averages

    def state(self) -> dict[str, Tensor]:
        """As `Averaging.state`: the average by the names of the weights."""
        return self._averages

    def load(self, state: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
        """As `Averaging.load`, for tensors of any shape."""
        if state:  # empty if the checkpoint precedes the average's first step
            check_tensors(state, weights)
        self._averages = {name: torch.empty_like(weights[name]).copy_(tensor) for name, tensor in state.items()}
