"""Which parameters decay: matrices do, biases and layer norms do not (Devlin et al. 2019, as in Google's code)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch.nn import Parameter

from bertwright.core.errors import RecipeError


def decays(name: str) -> bool:
    """Whether the parameter of this name decays; layer norms are the modules called `norm`."""
    *_, module, parameter = ["", *name.split(".")]
    return parameter != "bias" and module != "norm"


def decay_groups(named_parameters: Iterable[tuple[str, Parameter]], weight_decay: float) -> list[dict[str, Any]]:
    """Two parameter groups for a torch optimizer: the decaying, then the others with weight decay 0.

    An empty group is a `RecipeError`: names that the rule does not understand would decay, or not, without a word.
    """
    named = list(named_parameters)
    decaying = [parameter for name, parameter in named if decays(name)]
    others = [parameter for name, parameter in named if not decays(name)]
    if not decaying or not others:
        raise RecipeError(
            f"weight decay needs parameters that decay and some that do not, but of {len(named)} names "
            f"({', '.join(name for name, _ in named[:3])}, ...) {len(decaying)} decay; layer norms are to be called "
            "'norm' and biases 'bias'"
        )
    return [{"params": decaying, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
