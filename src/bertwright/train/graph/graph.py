"""What a graph does to a network and to its batches, and whether this machine can."""

from __future__ import annotations

from typing import assert_never

import torch
from torch import nn

from bertwright.core.errors import MissingExtraError, RecipeError
from bertwright.model.model import Model
from bertwright.model.pretraining import PreTrainingModel
from bertwright.train.graph.compiler import missing_compiler
from bertwright.train.graph.config import CompiledConfig, EagerConfig, GraphConfig, OrtModuleConfig
from bertwright.train.graph.ort_packages import REMEDY, missing_ortmodule

_SHAPES = 128
"""Most shapes that a training may come to have."""


def run_as(model: Model, config: GraphConfig, device: torch.device) -> nn.Module:
    """What runs the forward passes of `model`, and so the backward ones, as `config` says: itself, or a module that
    takes the same batches and has its very parameters.

    Its tensors and their names stay. `RecipeError` where this machine has no compiler for `device`,
    `MissingExtraError` where this environment has no ONNX Runtime that trains.
    """
    match config:
        case EagerConfig():
            return model
        case CompiledConfig():
            if missing := missing_compiler(device.type):
                raise RecipeError(f"train.graph = compiled needs {missing}. Install it, or set train.graph=eager.")
            # The compiler is loaded here, and learns here what torch has been asked for before.
            mode = torch.get_deterministic_debug_mode()
            torch.use_deterministic_algorithms(mode > 0, warn_only=mode == 1)
            # Each phase, halved micro-batches and scoring have shapes of their own; torch gives up at eight.
            torch._dynamo.config.recompile_limit = _SHAPES
            graphs = config.cuda_graphs and device.type == "cuda"
            # Whole, or the parts between would wait for the host; of fixed shape, so that a graph can be replayed.
            model.compile(fullgraph=True, dynamic=False, mode="reduce-overhead" if graphs else "default")
            return model
        case OrtModuleConfig():
            if missing := missing_ortmodule():
                raise MissingExtraError(f"train.graph = ortmodule needs {missing}. {REMEDY}")
            if device.type != "cpu":
                raise RecipeError("train.graph = ortmodule computes on a CPU. Set train.device=cpu.")
            if not isinstance(model, PreTrainingModel):
                raise RecipeError("train.graph = ortmodule runs pre-training heads alone. Set train.graph=eager.")
            from bertwright.train.graph.ortmodule import OrtNetwork

            return OrtNetwork(model)
        case _:
            assert_never(config)
