"""LAMB as NVIDIA's FusedLAMB does it, in float64 numpy: the rule that the fast one must follow.

One update, for all tensors together:

1. The gradient norm is taken over all tensors; where it is longer than `max_grad_norm`, every gradient is divided
   by norm / max_grad_norm.
2. m and v are the running averages of the gradient (with factor 1 - beta1, or 1 without `grad_averaging`) and of its
   square.
3. With bias correction, m and v are divided by 1 - beta^step.
4. u = m / (sqrt(v) + eps) + weight_decay * p.
5. The trust ratio is ‖p‖ / ‖u‖ if both norms are above 0, else 1. A tensor without weight decay has ratio 1,
   unless NVLAMB is chosen. It is at most `max_trust_ratio`, where that is not 0.
6. p = p - rate * ratio * u.
"""

from dataclasses import dataclass, field

import numpy as np


@dataclass
class ReferenceLamb:
    weights: dict[str, np.ndarray]
    weight_decay: dict[str, float]
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-6
    bias_correction: bool = True
    nvlamb: bool = False
    max_trust_ratio: float = 0.0
    grad_averaging: bool = True
    max_grad_norm: float = 1.0
    step: int = 0
    m: dict[str, np.ndarray] = field(default_factory=dict)
    v: dict[str, np.ndarray] = field(default_factory=dict)

    def update(self, gradients: dict[str, np.ndarray], rate: float) -> None:
        self.step += 1
        norm = np.sqrt(sum((g.astype(np.float64) ** 2).sum() for g in gradients.values()))
        shrink = max(1.0, norm / self.max_grad_norm) if self.max_grad_norm else 1.0
        for name, gradient in gradients.items():
            self._update_one(name, gradient.astype(np.float64) / shrink, rate)

    def _update_one(self, name: str, g: np.ndarray, rate: float) -> None:
        beta1, beta2 = self.betas
        m = self.m[name] = beta1 * self.m.get(name, np.zeros_like(g)) + (1 - beta1 if self.grad_averaging else 1.0) * g
        v = self.v[name] = beta2 * self.v.get(name, np.zeros_like(g)) + (1 - beta2) * g * g
        if self.bias_correction:
            m, v = m / (1 - beta1**self.step), v / (1 - beta2**self.step)
        p = self.weights[name]
        u = m / (np.sqrt(v) + self.eps) + self.weight_decay[name] * p
        p_norm, u_norm = np.linalg.norm(p), np.linalg.norm(u)
        adapts = (self.weight_decay[name] != 0 or self.nvlamb) and p_norm > 0 and u_norm > 0
        ratio = min(p_norm / u_norm, self.max_trust_ratio or np.inf) if adapts else 1.0
        self.weights[name] = p - rate * ratio * u
