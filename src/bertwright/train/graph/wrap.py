"""Applies a graph mode to a model in a user's own training loop."""

from __future__ import annotations

from typing import Literal, get_args

from torch import nn

from bertwright.core.errors import MissingExtraError, RecipeError
from bertwright.train.graph.compiler import missing_compiler
from bertwright.train.graph.ort_packages import missing_ortmodule

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
