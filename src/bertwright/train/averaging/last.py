"""The mean of the weights at the newest steps of a fixed interval (Kaddour 2022, "Stop wasting my time!", LAWA)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from bertwright.core.errors import CheckpointError
from bertwright.train.averaging.check import check_tensors


class Last:
    """An `Averaging` that keeps complete copies in host memory, so the end of training need not be known in advance."""

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
            check_tensors(copy, weights)
        self._kept = kept
