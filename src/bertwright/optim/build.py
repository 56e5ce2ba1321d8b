"""Builds the optimizer from the recipe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

import torch
from torch import Tensor, nn
from torch.nn import Parameter
from torch.optim import Optimizer

from bertwright.core.errors import RecipeError
from bertwright.optim.adam import PlainAdamW, has_fused_adam
from bertwright.optim.config import AdamWConfig, LambConfig, MuonConfig, OptimConfig, OptimizerPlugin
from bertwright.optim.groups import parameter_groups
from bertwright.optim.shards import Shards


def build_optimizer(config: OptimConfig, model: nn.Module, fused: Mapping[str, int]) -> Optimizer:
    """The optimizer of `config` for `model`, without weight decay for biases and layer norms.

    `fused`: the number of matrices in a tensor that has several, by the end of its name (`NetworkConfig.fused`).

    The learning rate, `group["lr"]`, is 0 until the caller sets it before each update (`groups.set_rate`). The caller
    also clips to `config.max_grad_norm`, because the norm decides whether a step is skipped (see `norms`). Raises
    `RecipeError` if a pattern of `config.groups` matches no tensor, or two patterns match the same one.
    """
    return optimizer_of(config, dict(model.named_parameters()), fused)


def moment_names(config: OptimConfig, model: nn.Module) -> dict[str, tuple[str, ...]]:
    """The names of the state tensors of each parameter, besides the step counter, found by running one update."""
    # One-element parameters with the same names and dimensions, by which an optimizer may distinguish parameters.
    tiny = {name: Parameter(torch.zeros([1] * p.ndim)) for name, p in model.named_parameters()}
    for parameter in tiny.values():
        parameter.grad = torch.zeros_like(parameter)
    optimizer = optimizer_of(config, tiny, {})
    optimizer.step()
    for name, p in tiny.items():
        if wrong := _wrong_state(optimizer.state[p], p):
            raise RecipeError(
                f"optim.kind = {config.kind} cannot be saved: its state of {name} {wrong}. The state of a parameter "
                "must be `step`, the number of updates as a tensor, and tensors of the parameter's shape."
            )
    return {name: tuple(kept for kept in optimizer.state[p] if kept != "step") for name, p in tiny.items()}


def _wrong_state(state: Mapping[str, Any], parameter: Parameter) -> str:
    """What is wrong with an optimizer's state of a parameter, as the end of a sentence; "" if nothing is."""
    if not isinstance(state.get("step"), Tensor):
        return "has no tensor `step`"
    wrong = [k for k, v in state.items() if k != "step" and getattr(v, "shape", None) != parameter.shape]
    return f"has {wrong[0]!r} of another shape or type" if wrong else ""


def optimizer_of(
    config: OptimConfig, named: Mapping[str, Parameter], fused: Mapping[str, int], shards: Shards | None = None
) -> Optimizer:
    """As `build_optimizer`, for parameters by name; with `shards` they are this rank's parts."""
    groups = parameter_groups(named, config.weight_decay, config.groups)
    match config:
        case AdamWConfig():
            # Fused: one pass over memory for weights, gradient and both moments instead of one pass per operation.
            kernel = all(has_fused_adam(p.device.type) for p in named.values())
            return PlainAdamW(groups, lr=0.0, betas=config.betas, eps=config.eps, fused=kernel)
        case LambConfig():
            from bertwright.optim.lamb import Lamb

            return Lamb(groups, config, shards)
        case MuonConfig():
            from bertwright.optim.muon import Muon, split_matrices

            return Muon(split_matrices(groups, named, fused), config, shards)
        case OptimizerPlugin():
            built: Optimizer = config.build(groups, shards)
            return built
        case _:
            assert_never(config)
