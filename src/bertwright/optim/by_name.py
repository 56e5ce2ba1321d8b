"""What an optimizer does with a tensor, told from its name. Knows no torch."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from bertwright.core.errors import RecipeError
from bertwright.optim.config import GroupConfig, MuonConfig, OptimConfig


def decays(name: str) -> bool:
    """Whether the parameter of this name decays; layer norms are the modules called `norm`."""
    # "" before the name, so that a parameter of the model itself has a module as well.
    *_, module, parameter = ["", *name.split(".")]
    return parameter != "bias" and module != "norm"


def is_layer_matrix(name: str, dimensions: int) -> bool:
    """Whether Muon moves this parameter: a matrix inside `layers`; embeddings and heads are none."""
    return dimensions == 2 and decays(name) and "layers" in name.split(".")


def moments_of(config: OptimConfig, name: str, dimensions: int) -> int:
    """How many tensors of a parameter's shape the optimizer keeps of it."""
    return 1 if isinstance(config, MuonConfig) and is_layer_matrix(name, dimensions) else 2


def owners(names: Sequence[str], overrides: Sequence[GroupConfig]) -> dict[str, int]:
    """The override (`optim.groups`) of each name that one of them names.

    `RecipeError` for a pattern that names no tensor, and for two that name the same one.
    """
    owner: dict[str, int] = {}
    for index, override in enumerate(overrides):
        matched = [name for name in names if fnmatchcase(name, override.pattern)]
        if not matched:
            raise RecipeError(
                f"optim.groups.{index}.pattern {override.pattern!r} names no tensor of this network; its tensors are "
                f"called {', '.join(names[:3])}, ..., {names[-1]}"
            )
        if twice := [name for name in matched if name in owner]:
            first = owner[twice[0]]
            raise RecipeError(
                f"optim.groups.{first}.pattern {overrides[first].pattern!r} and optim.groups.{index}.pattern "
                f"{override.pattern!r} both name {twice[0]}; a tensor has one group: make one of them narrower"
            )
        owner |= dict.fromkeys(matched, index)
    return owner
