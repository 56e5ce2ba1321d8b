"""LAMB (You et al. 2020), by the rule of NVIDIA's FusedLAMB.

For each tensor p, with Adam's moments m and v of its gradient (clipped beforehand, see `norms`):

    u = m̂ / (√v̂ + eps) + weight_decay · p
    p ← p - lr · r · u,    r = ‖p‖ / ‖u‖ if both are above 0, else 1

The trust ratio r is 1 for tensors without weight decay, unless `trust_ratio_on_undecayed` is set; it is clipped at
`max_trust_ratio`, unless that is 0. Without `grad_averaging` the first moment, and therefore m̂, is larger by
1 / (1 - beta1); the stored moment excludes this factor, so that checkpoints do not depend on the setting.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from bertwright.optim.adam import AdamRule, adam_by, add_group
from bertwright.optim.config import LambConfig
from bertwright.optim.norms import square_norms
from bertwright.optim.shards import Shards, Whole


class Lamb(Optimizer):
    """LAMB as a torch optimizer: computes the updates by one Adam step, then the norms, then the weights, each for all
    tensors together and without synchronising the host.

    Norms are those of complete tensors: if ranks hold parts, `shards` sums the squared norms. During a step the updates
    take as much memory as the parameters. All parameters have the same dtype and device.
    """

    add_param_group = add_group

    def __init__(self, params: Iterable[dict[str, Any]], config: LambConfig, shards: Shards | None = None) -> None:
        super().__init__(params, {"lr": 0.0, "weight_decay": 0.0})  # the rate is set before every update
        self.config = config
        self.shards = shards or Whole()

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]  # torch's takes a closure, for line-search optimizers
        """One update of every parameter that has a gradient."""
        groups = [(group, [p for p in group["params"] if p.grad is not None]) for group in self.param_groups]
        parameters = [p for _, moving in groups for p in moving]
        if not parameters:
            return
        # Negative, because Adam subtracts: a step of rate 1 turns the negated decay term into -u.
        decays = [-group["weight_decay"] for group, moving in groups for _ in moving]
        negative_updates = list(torch._foreach_mul(parameters, decays))
        self._add_adam(parameters, negative_updates)
        squares = self.shards.add(torch.stack([square_norms(parameters), square_norms(negative_updates)]))
        ratios = torch.split(self._trust_ratios(squares), [len(moving) for _, moving in groups])
        rates = torch.cat([self._rates(group, part) for (group, _), part in zip(groups, ratios, strict=True)])
        # The factors stay on the device: Python numbers would synchronise the host in the middle of a step.
        torch._foreach_addcmul_(parameters, negative_updates, rates.to(parameters[0].dtype).unbind())

    def _trust_ratios(self, squares: Tensor) -> Tensor:
        """[n] trust ratios, from the squared norms [2, n] of parameters and updates."""
        p_norms, u_norms = squares.sqrt()
        clipped = (p_norms / u_norms).clamp(max=self.config.max_trust_ratio or torch.inf)
        return torch.where((p_norms > 0) & (u_norms > 0), clipped, 1.0)

    def _rates(self, group: dict[str, Any], ratios: Tensor) -> Tensor:
        """[n] the factors for the updates of a group's tensors, from their trust ratios [n]."""
        adapts = group["weight_decay"] != 0 or self.config.trust_ratio_on_undecayed
        rate: float = group["lr"]
        return rate * (ratios if adapts else torch.ones_like(ratios))

    def _add_adam(self, parameters: Sequence[Tensor], negative_updates: list[Tensor]) -> None:
        """Advance the moments and subtract m̂ / (√v̂ + eps) from `negative_updates`, by an Adam step of rate 1."""
        beta1, _ = self.config.betas
        states = [self._state(p) for p in parameters]
        steps = [state["step"] for state in states]
        torch._foreach_add_(steps, 1)
        if not self.config.bias_correction:
            steps = [torch.full_like(steps[0], torch.inf)] * len(steps)  # 1 - beta^inf = 1: nothing is corrected
        rate = 1.0 if self.config.grad_averaging else 1 / (1 - beta1)
        gradients = [p.grad for p in parameters if p.grad is not None]
        adam_by(gradients, negative_updates, states, steps, AdamRule(rate, self.config.betas, self.config.eps))

    def _state(self, p: Tensor) -> dict[str, Tensor]:
        state: dict[str, Tensor] = self.state[p]
        if not state:
            # The fused kernel requires float32 on the device of the parameter.
            state["step"] = torch.zeros((), dtype=torch.float32, device=p.device)
            state["exp_avg"] = torch.zeros_like(p)
            state["exp_avg_sq"] = torch.zeros_like(p)
        return state
