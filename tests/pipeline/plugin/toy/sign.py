"""Sign descent with momentum."""

from __future__ import annotations

from typing import Any

import torch


class Sign(torch.optim.Optimizer):
    """p ← (1 - lr · weight_decay) · p - lr · sign(m)."""

    def __init__(self, groups: Any, momentum: float) -> None:
        super().__init__(groups, {"lr": 0.0, "weight_decay": 0.0})
        self.momentum = momentum

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["step"], state["average"] = torch.zeros(()), torch.zeros_like(p)
                state["step"] += 1
                state["average"].lerp_(p.grad, 1 - self.momentum)
                p.mul_(1 - group["lr"] * group["weight_decay"]).sub_(group["lr"] * state["average"].sign())
