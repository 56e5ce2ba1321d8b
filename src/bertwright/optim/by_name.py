"""How an optimizer treats a tensor, determined from its name. Does not import torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from bertwright.core.errors import RecipeError
from bertwright.optim.config import GroupConfig, MuonConfig, OptimConfig, OptimizerPlugin


def decays(name: str) -> bool:
    """Whether the parameter of this name has weight decay; layer norms are the modules called `norm`."""
    # The leading "" gives a top-level parameter a module name as well.
    *_, module, parameter = ["", *name.split(".")]
    return parameter != "bias" and module != "norm"


def is_layer_matrix(name: str, dimensions: int) -> bool:
    """Whether Muon updates this parameter: a matrix inside `layers`, so not embeddings or heads."""
    return dimensions == 2 and decays(name) and "layers" in name.split(".")


def matrices_of(name: str, shape: Sequence[int], fused: Mapping[str, int]) -> list[tuple[int, ...]]:
    """The shapes of the matrices that Muon updates in this parameter, one after another along its rows; empty if AdamW
    updates it.

    `fused`: the number of matrices in a tensor that has several, by the end of its name (`NetworkConfig.fused`).
    """
    if not is_layer_matrix(name, len(shape)):
        return []
    count = next((count for end, count in fused.items() if name.endswith(f".{end}")), 1)
    rows, *columns = shape
    return [(rows // count, *columns)] * count


def moments_of(config: OptimConfig, name: str, dimensions: int) -> int:
    """The number of state tensors of a parameter's shape that the optimizer keeps for it."""
    if isinstance(config, OptimizerPlugin):
        return config.moments
    return 1 if isinstance(config, MuonConfig) and is_layer_matrix(name, dimensions) else 2


def match_groups(names: Sequence[str], overrides: Sequence[GroupConfig]) -> dict[str, int]:
    """The index of the override (`optim.groups`) that matches each name, for the names that have one.

    Raises `RecipeError` if a pattern matches no tensor, or two patterns match the same one.
    """
    owner: dict[str, int] = {}
    for index, override in enumerate(overrides):
        matched = [name for name in names if fnmatchcase(name, override.pattern)]
        if not matched:
            raise RecipeError(
                f"optim.groups.{index}.pattern {override.pattern!r} matches no tensor of this network; its tensors "
                f"are called {', '.join(names[:3])}, ..., {names[-1]}"
            )
        if twice := [name for name in matched if name in owner]:
            first = owner[twice[0]]
            raise RecipeError(
                f"optim.groups.{first}.pattern {overrides[first].pattern!r} and optim.groups.{index}.pattern "
                f"{override.pattern!r} both match {twice[0]}, but a tensor can have only one group; make one of the "
                "patterns narrower"
            )
        owner |= dict.fromkeys(matched, index)
    return owner
