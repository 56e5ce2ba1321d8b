"""One line for a training loop that is not ours."""

from __future__ import annotations

from typing import Literal, get_args

from torch import nn

from bertwright.core.errors import MissingExtraError, RecipeError
from bertwright.train.graph.compiler import missing_compiler
from bertwright.train.graph.ort_packages import missing_ortmodule

GraphKind = Literal["eager", "compiled", "ortmodule"]


def wrap_graph(model: nn.Module, kind: GraphKind) -> nn.Module:
    """`model` with its passes, forward and backward, run as `kind` says; call what is returned in its place.

    `eager` runs operations as they are written, `compiled` by torch.compile, `ortmodule` by ONNX Runtime, for modules
    of tensors or dictionaries of them. The parameters are the very same, under the same names, so an optimizer may be
    made before or after. No kind ever stands for another one: `RecipeError` for a kind that is none, without a
    compiler, or for a class of torch's own to compile, `MissingExtraError` without ONNX Runtime's training package.
    """
    match kind:
        case "eager":
            return model
        case "compiled":
            device = next((p.device.type for p in model.parameters()), "cpu")
            if missing := missing_compiler(device):
                raise RecipeError(f"the graph compiled needs {missing}. Install it, or take eager.")
            # torch compiles no forward of its own files in place, and would say nothing.
            if type(model).forward.__module__.startswith("torch."):
                raise RecipeError(
                    f"the graph compiled compiles forward, and that of {type(model).__name__} is torch's own, which is "
                    "run as it is. Hold it in a module of yours, with a forward that calls it."
                )
            model.compile()
            return model
        case "ortmodule":
            if missing := missing_ortmodule():
                raise MissingExtraError(
                    f"the graph ortmodule needs {missing}. Run make ort-env in a checkout of bertwright and use "
                    ".venv-ort/bin/python, or take eager."
                )
            from bertwright.train.graph.ortmodule import by_onnx_runtime

            return by_onnx_runtime(model)
        case _:
            raise RecipeError(f"there is no graph {kind!r}. Take one of {', '.join(get_args(GraphKind))}.")
