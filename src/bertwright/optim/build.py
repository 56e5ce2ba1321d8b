"""From the recipe's choice to an optimizer.

Matrices decay, biases and layer norms do not (Devlin et al. 2019, as in Google's code).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, assert_never

import torch
from torch import nn
from torch.nn import Parameter
from torch.optim import AdamW, Optimizer

from bertwright.core.errors import RecipeError
from bertwright.optim.config import AdamWConfig, LambConfig, OptimConfig


def build_optimizer(config: OptimConfig, model: nn.Module) -> Optimizer:
    """The optimizer of `config` for `model`, with biases and layer norms kept from decay.

    The learning rate, `group["lr"]`, is 0 until the caller sets it before each update. Clipping to
    `config.max_grad_norm` is the caller's too, because a step that is dropped is judged by the norm (see `norms`).
    """
    groups = decay_groups(model.named_parameters(), config.weight_decay)
    match config:
        case AdamWConfig():
            # Fused: one pass over memory for weights, gradient and both moments instead of one for each operation.
            return AdamW(groups, lr=0.0, betas=config.betas, eps=config.eps, fused=True)
        case LambConfig():
            from bertwright.optim.lamb import Lamb

            return Lamb(
                groups,
                betas=config.betas,
                eps=config.eps,
                bias_correction=config.bias_correction,
                trust_ratio_on_undecayed=config.trust_ratio_on_undecayed,
            )
        case _:
            assert_never(config)


def moment_names(config: OptimConfig) -> tuple[str, ...]:
    """What the optimizer keeps of a parameter beside the number of updates, asked of one that has made an update."""
    probe = nn.Linear(1, 1, device="meta").to_empty(device="cpu")  # draws no random numbers
    for parameter in probe.parameters():
        parameter.data.zero_()
        parameter.grad = torch.zeros_like(parameter)
    optimizer = build_optimizer(config, probe)
    optimizer.step()
    return tuple(name for name in optimizer.state[probe.weight] if name != "step")


def decays(name: str) -> bool:
    """Whether the parameter of this name decays; layer norms are the modules called `norm`."""
    # "" before the name, so that a parameter of the model itself has a module as well.
    *_, module, parameter = ["", *name.split(".")]
    return parameter != "bias" and module != "norm"


def decay_groups(named_parameters: Iterable[tuple[str, Parameter]], weight_decay: float) -> list[dict[str, Any]]:
    """Two parameter groups for a torch optimizer: the decaying, then the others with weight decay 0.

    An empty group is a `RecipeError`: names that the rule does not understand would decay, or not, without a word.
    """
    named = list(named_parameters)
    decaying = [parameter for name, parameter in named if decays(name)]
    others = [parameter for name, parameter in named if not decays(name)]
    if not decaying or not others:
        raise RecipeError(
            f"weight decay needs parameters that decay and some that do not, but of {len(named)} names "
            f"({', '.join(name for name, _ in named[:3])}, ...) {len(decaying)} decay; layer norms are to be called "
            "'norm' and biases 'bias'"
        )
    return [{"params": decaying, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
