"""Prepares a network for its graph mode, and checks that this machine supports it; also in a user's own loop.

What is compiled are regions: a layer, whose code serves all layers, the embeddings, the heads and the losses. Between
them nothing is computed but indices. Compiling the whole network as one graph takes as long as its layers are many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Literal, assert_never, get_args

import torch
from torch import Tensor, nn

from bertwright.core.errors import MissingExtraError, RecipeError
from bertwright.model.model import Model
from bertwright.model.pretraining import PreTrainingModel
from bertwright.tasks.terms import Summed, loss_sums
from bertwright.train.graph.config import ChosenGraph, CompiledConfig, EagerConfig, OrtModuleConfig
from bertwright.train.graph.packages import REMEDY, missing_compiler, missing_ortmodule

_SHAPES = 128
"""Maximum number of shapes and kinds of a region that a training may have."""


def run_as(model: Model, config: ChosenGraph, device: torch.device) -> nn.Module:
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
            # Each phase and halved micro-batches have separate shapes; torch's default limit is eight.
            torch._dynamo.config.recompile_limit = _SHAPES
            compile_regions(model)
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


def compile_regions(model: Model) -> None:
    """Compile the embeddings, the layers and the heads of a network, in place, for training; scoring runs them as
    written."""
    encoder: Any = model.encoder
    layers = getattr(encoder, "layers", ())
    parts = [*layers, *(part for part in encoder.children() if part is not layers)] if layers else [encoder]
    heads = [head for head in model.children() if head is not encoder]
    # torch does not compile a forward method from its own files in place: such a part is a single operation.
    regions = [part for part in (*parts, *heads) if not type(part).forward.__module__.startswith("torch.")]
    # One compiled function for all modules of a class, whose weights are its inputs. On the instance: a wrapper module
    # would add its own name to the tensor names.
    compiled = {kind: _compiled(kind.forward) for kind in {type(part) for part in regions}}
    for part in regions:
        part.__dict__["forward"] = partial(_run_region, compiled[type(part)], part)


def _run_region(compiled: Callable[..., Tensor], part: nn.Module, *given: Any) -> Tensor:
    return compiled(part, *given) if part.training else type(part).forward(part, *given)


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    # A full graph, or the host would be waited for between its parts; of fixed shape, so that it can be replayed.
    return torch.compile(function, fullgraph=True, dynamic=False)


@cache
def compiled_losses() -> Callable[[Mapping[str, Summed]], dict[str, Tensor]]:
    """Return `loss_sums`, compiled."""
    return _compiled(loss_sums)


GraphKind = Literal["eager", "compiled", "ortmodule"]


def wrap_graph(model: nn.Module, kind: GraphKind) -> nn.Module:
    """Return a module that runs the forward and backward passes of `model` as `kind` says; call it in place of `model`.

    `eager` runs operations as written, `compiled` uses torch.compile, and `ortmodule` uses ONNX Runtime, for modules
    whose inputs are tensors or dictionaries of tensors. The parameters and their names are unchanged, so an optimizer
    may be created before or after. No kind ever falls back to another: raises `RecipeError` for an unknown kind, a
    missing compiler, or a class of torch itself to compile, and `MissingExtraError` without ONNX Runtime's training
    package.
    """
    match kind:
        case "eager":
            return model
        case "compiled":
            device = next((p.device.type for p in model.parameters()), "cpu")
            if missing := missing_compiler(device):
                raise RecipeError(f"the graph compiled needs {missing}. Install it, or use eager.")
            # torch does not compile a forward method from its own files in place, and gives no warning.
            if type(model).forward.__module__.startswith("torch."):
                raise RecipeError(
                    f"the graph compiled compiles forward, but the forward of {type(model).__name__} is torch's own, "
                    "which is not compiled. Put the model into a module of your own, with a forward that calls it."
                )
            model.compile()
            return model
        case "ortmodule":
            if missing := missing_ortmodule():
                raise MissingExtraError(
                    f"the graph ortmodule needs {missing}. Run make ort-env in a checkout of bertwright and use "
                    ".venv-ort/bin/python, or use eager."
                )
            from bertwright.train.graph.ortmodule import by_onnx_runtime

            return by_onnx_runtime(model)
        case _:
            raise RecipeError(f"there is no graph {kind!r}. Use one of {', '.join(get_args(GraphKind))}.")
