"""Norms of large tensors, and clipping by the global norm of all gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def square_norms(tensors: Sequence[Tensor]) -> Tensor:
    """The squared 2-norm of each tensor, float64, [n]; the tensors are on one device."""
    return _by_rows(tensors) if tensors[0].device.type == "cpu" else _at_once(tensors)


def _by_rows(tensors: Sequence[Tensor]) -> Tensor:
    """As `square_norms`, on a CPU.

    Rows are summed in their own type and their norms in float64. torch's float32 norm of a whole embedding of
    23 million numbers is off by 0.1 % on CPUs, where it adds them one after another; this one is off by 1e-9, at
    the same speed.
    """
    return torch.stack([torch.linalg.vector_norm(x, dim=-1).double().square().sum() for x in tensors])


def _at_once(tensors: Sequence[Tensor]) -> Tensor:
    """As `square_norms`, on a GPU: one kernel for many tensors, where one by one each would take several.

    It adds in float64 from the first number on, which memory is slower than.
    """
    return torch.stack(torch._foreach_norm(list(tensors), 2, torch.float64)).square()


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


def clip_part(gradients: Sequence[Tensor], max_norm: float, ranks: int, loss_scale: float = 1.0) -> Tensor:
    """Clip one rank's part of a gradient before the parts of all `ranks` are added up; the part's norm before that,
    float64, a scalar.

    MLCommons' rule (BERT in TensorFlow, where `clip_by_global_norm_after_gradient_allreduce` is off): each rank has the
    gradient of the mean over its own examples, clips it to `max_norm`, and the mean over the ranks moves the weights.
    Here a rank's loss is a sum divided by the counts of the global batch, so that a part is 1 / ranks as long and so is
    its limit. Where all ranks count as many examples the sum is theirs; where they do not, a rank with more of them
    weighs more, as it does without clipping. The sum is no longer than `max_norm`.
    """
    return clip_global_norm(gradients, max_norm / ranks, loss_scale)
