"""One process with all weights on one device."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from bertwright.optim.groups import set_rate
from bertwright.optim.norms import clip_global_norm
from bertwright.optim.state import named_state


@dataclass(frozen=True)
class Single:
    """The engine of one process; see `Engine`."""

    model: nn.Module
    optimizer: Optimizer
    max_grad_norm: float

    def backward(self, loss: Tensor) -> None:
        """As `Engine.backward`; the loss is a scalar."""
        loss.backward()  # type: ignore[no-untyped-call]

    def gradients(self) -> list[Tensor]:
        """The gradient of every trained parameter, of the same shape, 0 where no micro-batch had one."""
        gradients = []
        for parameter in self.model.parameters():
            if parameter.requires_grad:
                if parameter.grad is None:
                    # A rank without sequences has no gradients, but must bring tensors of the same shapes to the sum.
                    parameter.grad = torch.zeros_like(parameter)
                gradients.append(parameter.grad)
        return gradients

    def reduce(self, loss_scale: float = 1.0) -> Tensor:
        """As `Engine.reduce`: a scalar."""
        return clip_global_norm(self.gradients(), self.max_grad_norm, loss_scale)

    def update(self, learning_rate: float) -> None:
        """As `Engine.update`."""
        set_rate(self.optimizer, learning_rate)
        self.optimizer.step()

    def gather(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """As `Engine.gather`: the tensors themselves, not copies."""
        return self.model.state_dict(), named_state(self.optimizer, self.model)
