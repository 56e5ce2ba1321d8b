"""One Adam step of many tensors: by torch's fused kernel, or by plain operations where a device has none.

The kernel for processors came with torch 2.4. Both compute the same; they differ in the last bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class AdamRule:
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019): what is the same for all tensors of a step."""

    learning_rate: float
    betas: tuple[float, float]
    """Decay rates of the averages of the gradient and of its square."""
    eps: float
    """Added to the root of the second moment."""
    weight_decay: float = 0.0
    """Share of the weights taken off per unit of learning rate."""


def has_fused_adam(device_type: str) -> bool:
    """Whether torch has its fused kernel for tensors of a device, cpu or cuda."""
    # Asked of torch's table of kernels: a number of a version would be wrong for some build.
    return torch._C._dispatch_has_kernel_for_dispatch_key("aten::_fused_adamw_", device_type.upper())


def adam_(
    parameters: Sequence[Tensor], states: Sequence[Mapping[str, Tensor]], steps: Sequence[Tensor], rule: AdamRule
) -> None:
    """`adam_by` for parameters of any shapes with their own gradients."""
    adam_by([p.grad for p in parameters if p.grad is not None], parameters, states, steps, rule)


def adam_by(
    gradients: Sequence[Tensor],
    parameters: Sequence[Tensor],
    states: Sequence[Mapping[str, Tensor]],
    steps: Sequence[Tensor],
    rule: AdamRule,
) -> None:
    """Move parameters of any shapes, and their moments `exp_avg` and `exp_avg_sq` in `states`, in place.

    `steps` are the numbers of updates with this one, by which the moments are corrected, scalars; inf corrects nothing.
    """
    averages, squares = [state["exp_avg"] for state in states], [state["exp_avg_sq"] for state in states]
    if not has_fused_adam(parameters[0].device.type):
        _plain(gradients, parameters, (averages, squares), steps, rule)
        return
    torch._fused_adamw_(
        list(parameters),
        list(gradients),
        averages,
        squares,
        [],
        list(steps),
        lr=rule.learning_rate,
        beta1=rule.betas[0],
        beta2=rule.betas[1],
        weight_decay=rule.weight_decay,
        eps=rule.eps,
        amsgrad=False,
        maximize=False,
    )


def _plain(
    gradients: Sequence[Tensor],
    parameters: Sequence[Tensor],
    moments: tuple[list[Tensor], list[Tensor]],
    steps: Sequence[Tensor],
    rule: AdamRule,
) -> None:
    """As `adam_by`, one tensor after another."""
    beta1, beta2 = rule.betas
    for p, gradient, average, square, step in zip(parameters, gradients, *moments, steps, strict=True):
        average.lerp_(gradient, 1 - beta1)
        square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        # Read by the host, which waits for nothing: only processors are without the kernel.
        count = float(step)
        root = square.sqrt().div_(math.sqrt(1 - beta2**count)).add_(rule.eps)
        p.mul_(1 - rule.learning_rate * rule.weight_decay)
        p.addcdiv_(average, root, value=-rule.learning_rate / (1 - beta1**count))
