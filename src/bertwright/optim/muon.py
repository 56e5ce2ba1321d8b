"""Muon (Jordan 2024) for the matrices of the layers, AdamW for everything else.

For a matrix W [rows, columns] with gradient G, the momentum M, and O the nearest half-orthogonal matrix of N:

    M ← μ · M + (1 - μ) · G,    N = μ · M + (1 - μ) · G (Nesterov)
    W ← (1 - lr · weight_decay) · W - lr · 0.2 · √max(rows, columns) · O

The factor is that of Moonlight (Liu et al. 2025, section 2.2): entries of the update are about 0.2, as with AdamW, so
that both rules share one learning rate and one decay; Jordan's factor, √max(1, rows / columns), needs separate rates.
`orthogonalized` approximates O by five Newton-Schulz iterations.

Each iteration multiplies X [m, n], m ≤ n, by aI + bG + cG² with the Gram matrix G = XXᵀ [m, m], which applies
a·s + b·s³ + c·s⁵ to each singular value s. After five of them singular values are between 0.7 and 1.2, not at 1.

The factors of all iterations are polynomials of the first G and commute, so they can be multiplied with each other
before they are multiplied with X (Gram Newton-Schulz, Dao et al. 2026): for n = 4m in 1.8 times fewer operations. In
float32 both ways agree to 1e-3 of the result at worst, when most singular values are zero. In bfloat16, as in Jordan's
code, the second is unstable without restarts, so X is multiplied each time.

Each of several matrices that a tensor stacks along its rows, such as queries, keys and values, is updated like a matrix
in a tensor of its own, with the factor of its own shape. One O for all would share its length between them, and the
matrix with the largest gradient would get most of it. Measurements of this and of other rules are in docs/results.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.optim import Optimizer

from bertwright.core.errors import RecipeError
from bertwright.optim.adam import AdamRule, adam_, add_group
from bertwright.optim.by_name import matrices_of
from bertwright.optim.config import MuonConfig
from bertwright.optim.groups import Group
from bertwright.optim.shards import Shards, Whole

RMS = 0.2
"""Root mean square of AdamW's updates, to which the updates of matrices are scaled (Liu et al. 2025)."""


def split_matrices(groups: Sequence[Group], named: Mapping[str, Parameter], fused: Mapping[str, int]) -> list[Group]:
    """`groups`, each split by the number of matrices in its parameters, which is its key `matrices`: 0 for parameters
    that AdamW updates. `fused` is as in `build_optimizer`. Raises `RecipeError` if there are no matrices of layers."""
    matrices = {id(p): len(matrices_of(name, p.shape, fused)) for name, p in named.items()}
    if not any(matrices.values()):
        raise RecipeError(
            f"optim.kind muon updates the matrices inside 'layers', but this network ({', '.join(list(named)[:3])}, "
            "...) has none; use adamw or lamb"
        )
    parts: list[Group] = []
    for group in groups:
        for count in sorted({matrices[id(p)] for p in group["params"]}):
            chosen = [p for p in group["params"] if matrices[id(p)] == count]
            parts.append({**group, "params": chosen, "matrices": count})
    return parts


class Muon(Optimizer):
    """Muon as a torch optimizer; the key `matrices` of each group says how many of them Muon updates in each of its
    parameters. With 0, AdamW updates the parameters."""

    add_param_group = add_group

    def __init__(self, params: Iterable[dict[str, Any]], config: MuonConfig, shards: Shards | None = None) -> None:
        super().__init__(params, {"lr": 0.0, "weight_decay": 0.0})  # the rate is set before every update
        self.config = config
        self.shards = shards or Whole()

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]  # torch's takes a closure, for line-search optimizers
        """One update of every parameter that has a gradient."""
        for group in self.param_groups:
            moving = [p for p in group["params"] if p.grad is not None]
            if not group["matrices"]:
                self._move_by_adamw(moving, group["lr"], group["weight_decay"])
                continue
            for p in moving:
                self._move_matrices(p, group["matrices"], group["lr"], group["weight_decay"])

    def _move_matrices(self, p: Tensor, count: int, rate: float, weight_decay: float) -> None:
        state, momentum = self._state(p, ("exp_avg",)), self.config.momentum
        state["step"] += 1
        assert p.grad is not None
        average = state["exp_avg"].lerp_(p.grad, 1 - momentum)
        # Computed from complete matrices, even if this rank holds only a part of them.
        direction = self.shards.whole_of(p.grad.lerp(average, momentum), p)
        matrices = direction.chunk(count)
        products = self.config.products
        low = p.is_cuda if products == "auto" else products == "bf16"
        for matrix in matrices:
            matrix.copy_(orthogonalized(matrix, low))
        step = self.shards.part_of(direction, p)
        p.mul_(1 - rate * weight_decay).add_(step, alpha=-rate * RMS * math.sqrt(max(matrices[0].shape)))

    def _move_by_adamw(self, parameters: list[Tensor], rate: float, weight_decay: float) -> None:
        states = [self._state(p, ("exp_avg", "exp_avg_sq")) for p in parameters]
        steps = [state["step"].add_(1) for state in states]
        if states:
            adam_(parameters, states, steps, AdamRule(rate, self.config.betas, self.config.eps, weight_decay))

    def _state(self, p: Tensor, moments: Sequence[str]) -> dict[str, Tensor]:
        state: dict[str, Tensor] = self.state[p]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32, device=p.device)
            state.update({moment: torch.zeros_like(p) for moment in moments})
        return state


COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""a, b and c (Jordan 2024)."""
ITERATIONS = 5
_ASPECT = 1.5
"""The n / m above which multiplying the factors first takes fewer operations."""


def orthogonalized(matrix: Tensor, low: bool = False) -> Tensor:
    """The matrix [rows, columns] with all singular values moved close to 1, in the same dtype; zero stays zero. `low`:
    by products in bfloat16."""
    # Transposed so that products have the size of the shorter side; dividing by the norm bounds singular values by 1.
    x = matrix.mT if matrix.shape[0] > matrix.shape[1] else matrix
    x = x / (torch.linalg.matrix_norm(x) + 1e-7)
    x = x.to(torch.bfloat16) if low else x
    short, long = x.shape
    x = _by_factors(x) if long > _ASPECT * short and not low else _by_matrix(x)
    whole: Tensor = x.mT if matrix.shape[0] > matrix.shape[1] else x
    return whole.to(matrix.dtype)


def _by_matrix(x: Tensor) -> Tensor:
    """All iterations, each multiplied with X [m, n]."""
    for _ in range(ITERATIONS):
        x = _times_factor(x, _polynomial(x @ x.mT))
    return x


def _by_factors(x: Tensor) -> Tensor:
    """All iterations, multiplied with X [m, n] once."""
    gram = x @ x.mT
    polynomial = _polynomial(gram)
    factors = polynomial + COEFFICIENTS[0] * torch.eye(len(x), dtype=x.dtype, device=x.device)
    for _ in range(ITERATIONS - 1):
        for _ in range(2):  # the Gram matrix of X multiplied by a factor F is F·G·F, which is F·F·G
            gram = _times_factor(gram, polynomial)
        polynomial = _polynomial(gram)
        factors = _times_factor(factors, polynomial)
    return factors @ x


def _polynomial(gram: Tensor) -> Tensor:
    """bG + cG², [m, m]."""
    _, b, c = COEFFICIENTS
    return torch.addmm(gram, gram, gram, beta=b, alpha=c)


def _times_factor(x: Tensor, polynomial: Tensor) -> Tensor:
    """(aI + `polynomial`) · X, [m, n]."""
    return torch.addmm(x, polynomial, x, beta=COEFFICIENTS[0])
