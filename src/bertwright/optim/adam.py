"""One Adam step for many tensors: by torch's fused kernel, or by plain operations on devices without one.

The CPU kernel exists since torch 2.4. Both variants compute the same, except for rounding in the last bits. Optimizers
have no compiler hooks here: these import torch's compiler even if nothing is compiled, which takes a second of
processor time, and memory, at each start of each rank.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim import AdamW, Optimizer


@dataclass(frozen=True)
class AdamRule:
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019): the settings shared by all tensors of a step."""

    learning_rate: float
    betas: tuple[float, float]
    """Decay rates of the averages of the gradient and of its square."""
    eps: float
    """Added to the square root of the second moment."""
    weight_decay: float = 0.0
    """Share of the weights subtracted per unit of learning rate."""


def has_fused_adam(device_type: str) -> bool:
    """Whether torch has a fused Adam kernel for tensors on a device type, cpu or cuda."""
    # Looked up in torch's dispatch table: a version check would be wrong for some builds.
    return torch._C._dispatch_has_kernel_for_dispatch_key("aten::_fused_adamw_", device_type.upper())


def adam_(
    parameters: Sequence[Tensor], states: Sequence[Mapping[str, Tensor]], steps: Sequence[Tensor], rule: AdamRule
) -> None:
    """`adam_by` for parameters of any shape, with the gradients from `.grad`."""
    adam_by([p.grad for p in parameters if p.grad is not None], parameters, states, steps, rule)


def adam_by(
    gradients: Sequence[Tensor],
    parameters: Sequence[Tensor],
    states: Sequence[Mapping[str, Tensor]],
    steps: Sequence[Tensor],
    rule: AdamRule,
) -> None:
    """Update parameters of any shape, and their moments `exp_avg` and `exp_avg_sq` in `states`, in place.

    `steps` are the numbers of updates including this one, scalars, for bias correction; inf disables it.
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
    """As `adam_by`, one tensor at a time."""
    beta1, beta2 = rule.betas
    for p, gradient, average, square, step in zip(parameters, gradients, *moments, steps, strict=True):
        average.lerp_(gradient, 1 - beta1)
        square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        # Reading the value on the host does not block: only CPUs lack the kernel.
        count = float(step)
        root = square.sqrt().div_(math.sqrt(1 - beta2**count)).add_(rule.eps)
        p.mul_(1 - rule.learning_rate * rule.weight_decay)
        p.addcdiv_(average, root, value=-rule.learning_rate / (1 - beta1**count))


add_group = inspect.unwrap(Optimizer.add_param_group)
"""`Optimizer.add_param_group` without the decorator that excludes it from compilation."""


class PlainAdamW(AdamW):
    """torch's AdamW without compiler hooks."""

    add_param_group = add_group
    # torch's decorator on `step` adds graph breaks for the compiler; `no_grad` is equivalent otherwise.
    step = torch.no_grad()(inspect.unwrap(AdamW.step))
