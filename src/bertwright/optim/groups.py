"""Groups of parameters: who decays, and what the recipe sets for tensors of certain names.

Matrices decay, biases and layer norms do not (Devlin et al. 2019, as in Google's code).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from torch.nn import Parameter
from torch.optim import Optimizer

from bertwright.core.errors import RecipeError
from bertwright.optim.config import GroupConfig

Group = dict[str, Any]
"""A parameter group of a torch optimizer: `params`, `weight_decay`, `learning_rate_scale`."""


def decays(name: str) -> bool:
    """Whether the parameter of this name decays; layer norms are the modules called `norm`."""
    # "" before the name, so that a parameter of the model itself has a module as well.
    *_, module, parameter = ["", *name.split(".")]
    return parameter != "bias" and module != "norm"


def parameter_groups(
    named: Mapping[str, Parameter], weight_decay: float, overrides: Sequence[GroupConfig] = ()
) -> list[Group]:
    """The decaying parameters, those that do not, and the same of the tensors that each of `overrides` names.

    `RecipeError` where nothing decays or everything does: names that the rule does not understand would decay, or not,
    without a word. So too for a pattern that names no tensor, and for two that name the same one.
    """
    decaying = [name for name in named if decays(name)]
    if not decaying or len(decaying) == len(named):
        raise RecipeError(
            f"weight decay needs parameters that decay and some that do not, but of {len(named)} names "
            f"({', '.join(list(named)[:3])}, ...) {len(decaying)} decay; layer norms are to be called "
            "'norm' and biases 'bias'"
        )
    owner = _owners(list(named), overrides)
    groups: list[Group] = []
    for index, override in enumerate([None, *overrides], -1):
        own = [name for name in named if owner.get(name, -1) == index]
        scale = override.learning_rate_scale if override else 1.0
        given = override.weight_decay if override else None
        for decay, names in ((weight_decay, filter(decays, own)), (0.0, (n for n in own if not decays(n)))):
            group = {"params": [named[name] for name in names], "weight_decay": decay if given is None else given}
            groups += [group | {"learning_rate_scale": scale}] if group["params"] else []
    return groups


def set_rate(optimizer: Optimizer, learning_rate: float) -> None:
    """The rate of the next update, in every group times the group's own scale."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate * group.get("learning_rate_scale", 1.0)


def _owners(names: Sequence[str], overrides: Sequence[GroupConfig]) -> dict[str, int]:
    """The override of each name that one of them names."""
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
