"""Draws the initial weights, by the rule that a family names in its configuration (`initializer`).

`Normal`: BERT uses it without truncation, as NVIDIA's PyTorch code does (Google's truncates at two standard
deviations). DistilBERT uses it as in transformers, except that transformers sets the row of [PAD] to 0; here it is
drawn like all others. The paper initialises DistilBERT from every second layer of its teacher, which
`train.init_layers` does.

`TruncatedNormal`: ModernBERT's rule, as in transformers after Megatron (Shoeybi et al. 2019). For matrices whose
product is added to the residual, and for the head's transform, the standard deviation is divided by √(2·layers); for a
classifier it is 1 / √(hidden size).
"""

from __future__ import annotations

import math
from typing import assert_never

from torch import nn

from bertwright.model.config import NetworkConfig
from bertwright.model.family import Normal, TruncatedNormal

_INTO_RESIDUAL = ("output", "transform")
"""Names of the modules that start with smaller weights."""


def draw_weights(model: nn.Module, config: NetworkConfig) -> None:
    """Draw the weights of a network and its heads from torch's generator, in the order of its modules."""
    match config.initializer:
        case Normal(std):
            model.apply(lambda module: _draw_normal(module, std))
        case TruncatedNormal() as rule:
            _draw_truncated(model, config, rule)
        case _:
            assert_never(config.initializer)


def _draw_normal(module: nn.Module, std: float) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=std)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


def _draw_truncated(model: nn.Module, config: NetworkConfig, rule: TruncatedNormal) -> None:
    for name, module in model.named_modules():
        if not isinstance(module, nn.Linear | nn.Embedding):
            continue
        std = rule.std
        if name.rpartition(".")[2] in _INTO_RESIDUAL:
            std /= math.sqrt(2 * config.num_hidden_layers)
        elif name == "classification.classifier":
            std = config.hidden_size**-0.5
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
        furthest = rule.cutoff * std
        nn.init.trunc_normal_(module.weight, std=std, a=-furthest, b=furthest)
