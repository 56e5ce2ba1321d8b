"""From the recipe's choice to an optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from bertwright.optim.config import AdamWConfig, LambConfig
from bertwright.optim.groups import decay_groups
from bertwright.optim.lamb import Lamb, whole_tensors


def build_optimizer(
    config: LambConfig | AdamWConfig,
    model: nn.Module,
    reduce_norms: Callable[[Tensor], Tensor] = whole_tensors,
) -> Optimizer:
    """The optimizer of `config` for `model`, with biases and layer norms kept from decay.

    The learning rate, `group["lr"]`, is 0 until the caller sets it before each update. Clipping to
    `config.max_grad_norm` is the caller's too, because a step that is dropped is judged by the norm (see `clip`).
    `reduce_norms` serves LAMB on sharded tensors (see `Lamb`).
    """
    groups = decay_groups(model.named_parameters(), config.weight_decay)
    match config:
        case AdamWConfig():
            return AdamW(groups, lr=0.0, betas=config.betas, eps=config.eps, fused=True)
        case LambConfig():
            return Lamb(
                groups,
                lr=0.0,
                betas=config.betas,
                eps=config.eps,
                bias_correction=config.bias_correction,
                trust_ratio_on_undecayed=config.trust_ratio_on_undecayed,
                reduce_norms=reduce_norms,
            )
        case _:
            assert_never(config)
