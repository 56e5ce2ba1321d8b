"""Parameter groups: which parameters have weight decay, and the recipe's overrides for tensors by name.

Matrices decay; biases and layer norms do not (Devlin et al. 2019, as in Google's code).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch.nn import Parameter
from torch.optim import Optimizer

from bertwright.core.errors import RecipeError
from bertwright.optim.by_name import decays, match_groups
from bertwright.optim.config import GroupConfig

Group = dict[str, Any]
"""A parameter group of a torch optimizer: `params`, `weight_decay`, `learning_rate_scale`."""


def parameter_groups(
    named: Mapping[str, Parameter], weight_decay: float, overrides: Sequence[GroupConfig] = ()
) -> list[Group]:
    """Groups of decaying and non-decaying parameters, separately for the tensors matched by each of `overrides`.

    Raises `RecipeError` if no parameter decays or all do, because unrecognised names would otherwise silently get the
    wrong decay, and if a pattern matches no tensor or two patterns match the same one.
    """
    decaying = [name for name in named if decays(name)]
    if not decaying or len(decaying) == len(named):
        raise RecipeError(
            f"weight decay needs parameters that decay and some that do not, but of {len(named)} names "
            f"({', '.join(list(named)[:3])}, ...) {len(decaying)} decay; layer norms must be called 'norm' and biases "
            "'bias'"
        )
    owner = match_groups(list(named), overrides)
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
    """Set the learning rate of the next update: in each group, `learning_rate` times the scale of the group."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate * group.get("learning_rate_scale", 1.0)
