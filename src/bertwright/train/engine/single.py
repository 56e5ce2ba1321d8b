"""One process with all weights on one device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from bertwright.model.model import Model
from bertwright.optim.build import build_optimizer, moment_names
from bertwright.optim.config import OptimConfig
from bertwright.optim.groups import set_rate
from bertwright.optim.norms import clip_global_norm
from bertwright.optim.state import load_named_state, named_state, reset_steps
from bertwright.train.engine.chosen_rows import ChosenRows, Rows


@dataclass(frozen=True)
class Single:
    """The engine of one process; see `Engine`."""

    model: Model
    optim: OptimConfig
    optimizer: Optimizer = field(init=False)
    _chosen: list[ChosenRows] = field(init=False, default_factory=list)
    """The rows that are trained, if not all are: one element, or none."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "optimizer", build_optimizer(self.optim, self.model, self.model.config.fused))

    @property
    def parameters(self) -> dict[str, nn.Parameter]:
        """All parameters by name."""
        return dict(self.model.named_parameters())

    @property
    def has_full_weights(self) -> bool:
        """As `Engine.whole`."""
        return True

    def root(self, loss: Tensor, last: bool = True) -> Tensor:
        """As `Engine.root`: the loss itself, a scalar."""
        return loss

    def gradients(self) -> list[Tensor]:
        """Return the gradient of every trained parameter, of the same shape; 0 if no micro-batch had one."""
        gradients = [gradient_of(parameter) for parameter in self.model.parameters() if parameter.requires_grad]
        return self._chosen[0].gradients() if self._chosen else gradients

    def reduce(self, loss_scale: float = 1.0) -> Tensor:
        """As `Engine.reduce`: a scalar."""
        return clip_global_norm(self.gradients(), self.optim.max_grad_norm, loss_scale)

    def update(self, learning_rate: float) -> None:
        """As `Engine.update`."""
        set_rate(self.optimizer, learning_rate)
        if self._chosen:
            self._chosen[0].step()
        else:
            self.optimizer.step()

    def restart_steps(self) -> None:
        """As `Engine.restart_steps`."""
        reset_steps(self.optimizer)

    def train_rows(self, rows: Rows | None) -> None:
        """As `Engine.train_rows`; nothing else gets gradients."""
        moments = self.moments()
        self.choose(rows)
        self.load_moments(moments)

    def choose(self, rows: Rows | None) -> None:
        """As `train_rows`, but without any moments afterwards."""
        if self._chosen:
            self._chosen.pop().release()
        for name, parameter in self.parameters.items():
            parameter.requires_grad_(rows is None or name in rows)
            parameter.grad = None
        if rows is not None:
            self._chosen.append(ChosenRows(self.optimizer, self.parameters, rows))

    def gather(self, own: bool = False) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """As `Engine.gather`: the tensors themselves, not copies; with `own`, too, all of them."""
        return self.model.state_dict(), self.moments()

    def moments(self) -> dict[str, Tensor]:
        """Return the complete state, of any shapes by name, of the tensors that the optimizer holds."""
        if self._chosen:
            return self._chosen[0].state(moment_names(self.optim, self.model))
        return named_state(self.optimizer, self.parameters)

    def load(self, moments: Mapping[str, Tensor], weights: Mapping[str, Tensor] | None = None) -> None:
        """As `Engine.load`."""
        if weights is not None:
            self.model.load_state_dict(weights)
        self.load_moments(moments)

    def load_moments(self, moments: Mapping[str, Tensor]) -> None:
        """Restore what `moments` returned."""
        names = moment_names(self.optim, self.model)
        if self._chosen:
            self._chosen[0].load(moments, names)
        else:
            load_named_state(self.optimizer, self.parameters, moments, names)


def gradient_of(parameter: nn.Parameter) -> Tensor:
    """Return the gradient of a parameter of any shape; 0 if no micro-batch had one."""
    if parameter.grad is None:
        # A rank without sequences has no gradients, but needs tensors of the same shapes for the all-reduce.
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad
