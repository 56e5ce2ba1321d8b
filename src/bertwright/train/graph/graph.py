"""Prepares a network for its graph mode, and checks that this machine supports it."""

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
"""Maximum number of shapes that a training may have."""


def run_as(model: Model, config: GraphConfig, device: torch.device) -> nn.Module:
    """Return the module that runs the forward and backward passes of `model` as `config` says: `model` itself, or a
    module with the same parameters that takes the same batches.

    Its tensors and their names do not change. Raises `RecipeError` if this machine has no compiler for `device`, or the
    device or network is not supported; `MissingExtraError` if this environment has no ONNX Runtime for training.
    """
    match config:
        case EagerConfig():
            return model
        case CompiledConfig():
            if missing := missing_compiler(device.type):
                raise RecipeError(f"train.graph = compiled needs {missing}. Install it, or set train.graph=eager.")
            # The compiler is loaded here; repeat the determinism setting so that it takes effect there, too.
            mode = torch.get_deterministic_debug_mode()
            torch.use_deterministic_algorithms(mode > 0, warn_only=mode == 1)
            # Each phase, halved micro-batches and scoring have separate shapes; torch's default limit is eight.
            torch._dynamo.config.recompile_limit = _SHAPES
            graphs = config.cuda_graphs and device.type == "cuda"
            # A full graph, or the host would be waited for between its parts; of fixed shape, so that it can be
            # replayed.
            model.compile(fullgraph=True, dynamic=False, mode="reduce-overhead" if graphs else "default")
            return model
        case OrtModuleConfig():
            if missing := missing_ortmodule():
                raise MissingExtraError(f"train.graph = ortmodule needs {missing}. {REMEDY}")
            if device.type != "cpu":
                raise RecipeError("train.graph = ortmodule computes on a CPU. Set train.device=cpu.")
            if not isinstance(model, PreTrainingModel):
                raise RecipeError("train.graph = ortmodule supports only pre-training heads. Set train.graph=eager.")
            from bertwright.train.graph.ortmodule import OrtNetwork

            return OrtNetwork(model)
        case _:
            assert_never(config)
