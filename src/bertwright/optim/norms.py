"""Norms of large tensors, and clipping by the global norm of all gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def square_norms(tensors: Sequence[Tensor]) -> Tensor:
    """The squared 2-norm of each tensor, float64, [n].

    Rows are summed in their own type and their norms in float64. torch's float32 norm of a whole embedding of
    23 million numbers is off by 0.1 % on CPUs, where it adds them one after another; this one is off by 1e-9, at
    the same speed.
    """
    return torch.stack([torch.linalg.vector_norm(x, dim=-1).double().square().sum() for x in tensors])


def clip_global_norm(
    gradients: Sequence[Tensor],
    max_norm: float,
    loss_scale: float = 1.0,
    add: Callable[[Tensor], Tensor] = lambda square: square,
) -> Tensor:
    """Scale all gradients so that their global norm is at most `max_norm`; the norm before that, float64, a scalar.

    They are of a loss that was multiplied by `loss_scale`, which is undone in the same pass; the norms are without it.
    `add` adds up the squared norm, a scalar, over ranks that have parts of them.

    NVIDIA's rule: divide by norm / max_norm where the norm is longer (torch's clip_grad_norm_ adds 1e-6 to the
    norm). `max_norm` 0 measures only. A norm that is not finite leaves the gradients alone: such an update is the
    caller's to drop.
    """
    norm = add(square_norms(gradients).sum()).sqrt() / loss_scale
    if max_norm > 0 or loss_scale != 1:
        # Without a branch on the norm, which the host would have to wait for; a norm that is not finite scales nothing.
        longest = max_norm or torch.inf
        scale = torch.where(norm.isfinite() & (norm > longest), longest / norm, 1.0) / loss_scale
        torch._foreach_mul_(list(gradients), scale.to(gradients[0].dtype))
    return norm
