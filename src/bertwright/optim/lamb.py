"""LAMB (You et al. 2020), by the rule of NVIDIA's FusedLAMB.

For each tensor p, with Adam's moments m and v of its gradient (clipped beforehand, see `norms`):

    u = m̂ / (√v̂ + eps) + weight_decay · p
    p ← p - lr · r · u,    r = ‖p‖ / ‖u‖ if both are above 0, else 1

The trust ratio r is 1 for tensors without weight decay, unless `trust_ratio_on_undecayed`; it is clipped at
`max_trust_ratio`, where that is not 0. Without `grad_averaging` the first moment, and with it m̂, is 1 / (1 - beta1)
times as long; kept is the one of before, so that checkpoints hold the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from bertwright.optim.config import LambConfig
from bertwright.optim.norms import square_norms
from bertwright.optim.shards import Shards, Whole


class Lamb(Optimizer):
    """LAMB as an ordinary optimizer; one fused Adam kernel into a buffer, then the norms, then the update.

    Norms are of whole tensors: where ranks hold parts, `shards` adds up the squared ones. The buffer holds one more
    copy of the parameters; it is scratch, no part of the state.
    """

    def __init__(self, params: Iterable[dict[str, Any]], config: LambConfig, shards: Shards | None = None) -> None:
        super().__init__(params, {"lr": 0.0, "weight_decay": 0.0})  # the rate is set before every update
        self.config = config
        self.shards = shards or Whole()
        self._negative_updates: dict[Tensor, Tensor] = {}

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """One update of every parameter that has a gradient."""
        moving = [(group, p) for group in self.param_groups for p in group["params"] if p.grad is not None]
        if not moving:
            return
        parameters = [p for _, p in moving]
        # Negative, because the fused kernel subtracts: it turns the buffers into -u by a step of rate 1 on them.
        negative_updates = [self._negative_update(p, group["weight_decay"]) for group, p in moving]
        self._add_adam(parameters, negative_updates)
        squares = self.shards.add(torch.stack([square_norms(parameters), square_norms(negative_updates)]))
        p_norms, u_norms = squares.sqrt()
        clipped = (p_norms / u_norms).clamp(max=self.config.max_trust_ratio or torch.inf)
        ratios = torch.where((p_norms > 0) & (u_norms > 0), clipped, 1.0)
        for (group, p), negative_update, ratio in zip(moving, negative_updates, ratios, strict=True):
            adapts = group["weight_decay"] != 0 or self.config.trust_ratio_on_undecayed
            rate = group["lr"] * (ratio if adapts else torch.ones_like(ratio))
            # The ratio stays on the device: reading it would make the host wait once for every tensor.
            p.addcmul_(negative_update, rate.to(p.dtype))

    def _negative_update(self, p: Tensor, weight_decay: float) -> Tensor:
        """The buffer of `p`, filled with the decay term of -u."""
        if p not in self._negative_updates:
            self._negative_updates[p] = torch.empty_like(p)
        return torch.mul(p, -weight_decay, out=self._negative_updates[p])

    def _add_adam(self, parameters: list[Tensor], negative_updates: list[Tensor]) -> None:
        """Advance the moments and take m̂ / (√v̂ + eps) off the buffers: an Adam step of rate 1 on them."""
        beta1, beta2 = self.config.betas
        states = [self._state(p) for p in parameters]
        steps = [state["step"].add_(1) for state in states]
        if not self.config.bias_correction:
            steps = [torch.full_like(step, torch.inf) for step in steps]  # 1 - beta^inf = 1: nothing is corrected
        torch._fused_adamw_(
            negative_updates,
            [p.grad for p in parameters if p.grad is not None],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            steps,
            lr=1.0 if self.config.grad_averaging else 1 / (1 - beta1),
            beta1=beta1,
            beta2=beta2,
            weight_decay=0.0,
            eps=self.config.eps,
            amsgrad=False,
            maximize=False,
        )

    def _state(self, p: Tensor) -> dict[str, Tensor]:
        state: dict[str, Tensor] = self.state[p]
        if not state:
            # float32 on the device of the parameter is what the fused kernel asks for.
            state["step"] = torch.zeros((), dtype=torch.float32, device=p.device)
            state["exp_avg"] = torch.zeros_like(p)
            state["exp_avg_sq"] = torch.zeros_like(p)
        return state
