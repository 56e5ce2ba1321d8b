"""Some rows of some parameters, which an optimizer updates while everything else stays as it is.

The rows are parameters of their own, in the places of the complete ones: weight decay does not reach other rows, and
the norms of an optimizer such as LAMB are those of what it updates. Names carry shapes: N rows, [N, ...] of a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.optim import Optimizer

from bertwright.optim.state import check_state, load_named_state, named_state

Rows = Mapping[str, Tensor]
"""The numbers [N] of chosen rows, by the name of the parameter."""


class ChosenRows:
    """Replaces the parameters of an optimizer by these rows of them, until `release`; its state starts anew."""

    def __init__(self, optimizer: Optimizer, named: Mapping[str, Parameter], rows: Rows) -> None:
        self._optimizer, self._named = optimizer, named
        # An optimizer may hold only some of the parameters.
        held = {id(p) for group in optimizer.param_groups for p in group["params"]}
        self._held = {name: p for name, p in named.items() if id(p) in held}
        self._rows = {name: index.to(named[name].device) for name, index in rows.items()}
        self._masks = {name: _others(named[name], index) for name, index in self._rows.items()}
        self._parts = {name: Parameter(p.detach()[self._rows[name]]) for name, p in self._held.items() if name in rows}
        self._all = [list(group["params"]) for group in optimizer.param_groups]
        part_of = {id(named[name]): part for name, part in self._parts.items()}
        for group in optimizer.param_groups:
            group["params"] = [part_of[id(p)] for p in group["params"] if id(p) in part_of]
        optimizer.state.clear()

    def release(self) -> None:
        """Give the optimizer its parameters back, without any state."""
        for group, parameters in zip(self._optimizer.param_groups, self._all, strict=True):
            group["params"] = parameters
        self._optimizer.state.clear()

    def gradients(self) -> list[Tensor]:
        """Return the gradients of the complete parameters, of any shapes, with 0 in all other rows."""
        for name, others in self._masks.items():
            gradient = self._named[name].grad
            assert gradient is not None, "the caller has made it"
            gradient[others] = 0.0
        return [p.grad for name in self._masks if (p := self._named[name]).grad is not None]

    def step(self) -> None:
        """Update the rows by the gradients of the complete parameters."""
        for name, part in self._parts.items():
            whole, index = self._named[name], self._rows[name]
            assert whole.grad is not None
            part.grad = whole.grad[index]
            part.data.copy_(whole.detach()[index])  # may have been loaded since
        self._optimizer.step()
        for name, part in self._parts.items():
            self._named[name].detach()[self._rows[name]] = part.detach()
            part.grad = None

    def state(self, moments: Mapping[str, Sequence[str]]) -> dict[str, Tensor]:
        """As `named_state`: of every parameter that the optimizer holds, with moments of 0 for what is not updated.
        `moments` are the names of each parameter's."""
        kept = named_state(self._optimizer, self._parts)
        # An optimizer without rows of its own counts no updates.
        if len(kept) == 1:
            return kept
        complete = {"step": kept["step"]}
        for name, p in self._held.items():
            for key in (f"{moment}.{name}" for moment in moments[name]):
                complete[key] = torch.zeros_like(p)
                if key in kept:
                    complete[key][self._rows[name]] = kept[key]
        return complete

    def load(self, state: Mapping[str, Tensor], moments: Mapping[str, Sequence[str]]) -> None:
        """As `load_named_state`, for what `state` returned; moments of what is not updated are dropped."""
        check_state(self._held, state, moments)
        own = {"step": state["step"]}
        for key, tensor in state.items():
            name = key.partition(".")[2]
            own |= {key: tensor[self._rows[name].to(tensor.device)]} if name in self._parts else {}
        load_named_state(self._optimizer, self._parts, own, moments)


def _others(parameter: Tensor, index_N: Tensor) -> Tensor:
    """Return [rows] which rows of a parameter are not chosen."""
    others = torch.ones(len(parameter), dtype=torch.bool, device=parameter.device)
    others[index_N] = False
    return others
