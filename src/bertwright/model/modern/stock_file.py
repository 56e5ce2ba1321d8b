"""Translates a config.json of Hugging Face's ModernBERT to the keys of one version. Does not import torch.

Versions before 5 use `global_attn_every_n_layers`, `global_rope_theta` and `local_rope_theta`. From version 5 on, these
are `layer_types`, a list, and `rope_parameters`, a table for each type. This project uses the former.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertwright.core.errors import RecipeError

_LAYERS = {True: "full_attention", False: "sliding_attention"}
_THETAS = {"full_attention": "global_rope_theta", "sliding_attention": "local_rope_theta"}


def with_older_keys(path: Path, values: Mapping[str, Any], title: str) -> dict[str, Any]:
    """Return the values of a configuration file with the keys of versions before 5; `title` is the network's name.

    Raises `RecipeError` if its layers or rotations are not those of such a network.
    """
    own = {key: value for key, value in values.items() if key not in ("layer_types", "rope_parameters")}
    translated: dict[str, Any] = {}
    # Null is transformers' default before it is filled in.
    if (types := values.get("layer_types")) is not None:
        translated["global_attn_every_n_layers"] = _every(path, types, values, title)
    if (parameters := values.get("rope_parameters")) is not None:
        translated |= _thetas(path, parameters, title)
    for key, value in translated.items():
        if own.get(key, value) != value:
            raise RecipeError(
                f"{path}: {key} = {own[key]!r}, but layer_types and rope_parameters mean {value!r}; remove either"
            )
    return own | translated


def _every(path: Path, types: Any, values: Mapping[str, Any], title: str) -> int:
    """Return n, given a list of layer types in which every n-th layer is global."""
    wanted = f"global attention ({_LAYERS[True]}) in every n-th layer from the first on, {_LAYERS[False]} in the others"
    if not isinstance(types, list) or len(types) != values.get("num_hidden_layers"):
        raise RecipeError(
            f"{path}: layer_types = {types!r} is not a list of num_hidden_layers types; it must be {wanted}"
        )
    globals_ = [layer for layer, kind in enumerate(types) if kind == _LAYERS[True]]
    given = values.get("global_attn_every_n_layers")
    # With a single global layer, every n of at least the number of layers is equivalent; keep a given one.
    alone = given if isinstance(given, int) and given >= len(types) else max(len(types), 1)
    every = globals_[1] if len(globals_) > 1 else alone
    if types != [_LAYERS[layer % every == 0] for layer in range(len(types))]:
        raise RecipeError(f"{path}: layer_types = {types!r} is not {title}; it must be {wanted}")
    return int(every)


def _thetas(path: Path, parameters: Any, title: str) -> dict[str, Any]:
    """Return the RoPE bases of both kinds of layers, from the table of a newer file."""
    if not isinstance(parameters, dict) or not set(parameters) <= set(_THETAS):
        raise RecipeError(
            f"{path}: rope_parameters = {parameters!r} must have a table for each of {', '.join(_THETAS)}"
        )
    found: dict[str, Any] = {}
    for kind, table in parameters.items():
        turned = {"rope_type": "default", **table} if isinstance(table, dict) else {"table": table}
        theta = turned.pop("rope_theta", None)
        if table is not None and turned != {"rope_type": "default"}:
            raise RecipeError(
                f"{path}: rope_parameters.{kind} = {table!r} is not {title}; it must contain only the "
                "rope_type 'default' and a rope_theta"
            )
        if theta is not None:
            found[_THETAS[kind]] = theta
    return found
