"""From the recipe's choice to an optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

import torch
from torch import nn
from torch.nn import Parameter
from torch.optim import Optimizer

from bertwright.optim.adam import has_fused_adam
from bertwright.optim.config import AdamWConfig, LambConfig, MuonConfig, OptimConfig
from bertwright.optim.groups import parameter_groups
from bertwright.optim.shards import Shards
from bertwright.optim.uncompiled import PlainAdamW


def build_optimizer(config: OptimConfig, model: nn.Module) -> Optimizer:
    """The optimizer of `config` for `model`, with biases and layer norms kept from decay.

    The learning rate, `group["lr"]`, is 0 until the caller sets it before each update (`groups.set_rate`). Clipping to
    `config.max_grad_norm` is the caller's too, because a step that is dropped is judged by the norm (see `norms`).
    `RecipeError` for `config.groups` whose patterns name no tensor, or one tensor twice.
    """
    return optimizer_of(config, dict(model.named_parameters()))


def moment_names(config: OptimConfig, model: nn.Module) -> dict[str, tuple[str, ...]]:
    """What the optimizer keeps of each parameter beside the number of updates, asked of one that has made an update."""
    # Of the same names and numbers of dimensions, by which an optimizer may tell parameters apart, but one number each.
    tiny = {name: Parameter(torch.zeros([1] * p.ndim)) for name, p in model.named_parameters()}
    for parameter in tiny.values():
        parameter.grad = torch.zeros_like(parameter)
    optimizer = optimizer_of(config, tiny)
    optimizer.step()
    return {name: tuple(kept for kept in optimizer.state[p] if kept != "step") for name, p in tiny.items()}


def optimizer_of(config: OptimConfig, named: Mapping[str, Parameter], shards: Shards | None = None) -> Optimizer:
    """As `build_optimizer`, for parameters by their names; with `shards` they are this rank's parts."""
    groups = parameter_groups(named, config.weight_decay, config.groups)
    match config:
        case AdamWConfig():
            # Fused: one pass over memory for weights, gradient and both moments instead of one for each operation.
            fused = all(has_fused_adam(p.device.type) for p in named.values())
            return PlainAdamW(groups, lr=0.0, betas=config.betas, eps=config.eps, fused=fused)
        case LambConfig():
            from bertwright.optim.lamb import Lamb

            return Lamb(groups, config, shards)
        case MuonConfig():
            from bertwright.optim.muon import Muon, split_matrices

            return Muon(split_matrices(groups, named), config, shards)
        case _:
            assert_never(config)
