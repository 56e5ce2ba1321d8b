"""What a graph does to a network and to its batches, and whether this machine can."""

from __future__ import annotations

from typing import assert_never

import torch
from torch import nn

from bertwright.core.errors import RecipeError
from bertwright.train.graph.compiler import missing_compiler
from bertwright.train.graph.config import CompiledConfig, EagerConfig, GraphConfig

_SHAPES = 128
"""Most shapes that a training may come to have."""


def wrap_graph(model: nn.Module, config: GraphConfig, device: torch.device) -> None:
    """Have the forward passes of `model`, and so the backward ones, run as `config` says, from the next one on.

    Its tensors and their names stay. `RecipeError` where this machine has no compiler for `device`.
    """
    match config:
        case EagerConfig():
            pass
        case CompiledConfig():
            if missing := missing_compiler(device.type):
                raise RecipeError(f"train.graph = compiled needs {missing}. Install it, or set train.graph=eager.")
            # Each phase, halved micro-batches and scoring have shapes of their own; torch gives up at eight.
            torch._dynamo.config.recompile_limit = _SHAPES
            graphs = config.cuda_graphs and device.type == "cuda"
            # Whole, or the parts between would wait for the host; of fixed shape, so that a graph can be replayed.
            model.compile(fullgraph=True, dynamic=False, mode="reduce-overhead" if graphs else "default")
        case _:
            assert_never(config)
