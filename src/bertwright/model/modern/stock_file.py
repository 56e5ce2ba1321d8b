"""Reads a config.json of Hugging Face's ModernBERT, with the keys of either version. Does not import torch.

Versions before 5 use `global_attn_every_n_layers`, `global_rope_theta` and `local_rope_theta`. From version 5 on, these
are `layer_types`, a list, and `rope_parameters`, a table for each type. This project uses the former.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertwright.core.errors import RecipeError
from bertwright.model.config_file import Allowed, own_values, read_config_file
from bertwright.model.modern.network import ModernConfig
from bertwright.model.section_helpers import validated

SAME_NETWORK: Allowed = {
    # The second is the value in a model folder of this project.
    "model_type": ("modernbert", "modern"),
    "attention_bias": (False,),
    "mlp_bias": (False,),
    "norm_bias": (False,),
    "classifier_bias": (False,),
    "classifier_activation": ("gelu",),
    "rope_scaling": (None,),
    "cls_token_id": None,
    "sep_token_id": None,
    "classifier_pooling": None,
    "deterministic_flash_attn": None,
    "reference_compile": None,
    "repad_logits_with_grad": None,
    "sparse_prediction": None,
    "sparse_pred_ignore_index": None,
    # The published files have these keys, but the authors' code does not read them.
    "layer_norm_eps": None,
    "position_embedding_type": None,
}
"""Keys of other programs' files, in addition to those of every family, with the values that mean this network."""

_LAYERS = {True: "full_attention", False: "sliding_attention"}
_THETAS = {"full_attention": "global_rope_theta", "sliding_attention": "local_rope_theta"}


def read_modern_config(path: Path) -> dict[str, Any]:
    """Return the `ModernConfig` values of a configuration file by the authors, Hugging Face or this project.

    Raises `RecipeError` as `own_values` does, and if the values describe no valid network.
    """
    values = _in_our_words(path, read_config_file(path))
    own = own_values(path, values, ModernConfig.model_fields, SAME_NETWORK, ModernConfig.title)
    validated(ModernConfig, own, path, ModernConfig.title)
    return own


def _in_our_words(path: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: value for key, value in values.items() if key not in ("layer_types", "rope_parameters")}
    said: dict[str, Any] = {}
    # Null is transformers' default before it is filled in.
    if (types := values.get("layer_types")) is not None:
        said["global_attn_every_n_layers"] = _every(path, types, values)
    if (parameters := values.get("rope_parameters")) is not None:
        said |= _thetas(path, parameters)
    for key, value in said.items():
        if own.get(key, value) != value:
            raise RecipeError(
                f"{path}: {key} = {own[key]!r}, but layer_types and rope_parameters mean {value!r}; remove either"
            )
    return own | said


def _every(path: Path, types: Any, values: Mapping[str, Any]) -> int:
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
        raise RecipeError(f"{path}: layer_types = {types!r} is not {ModernConfig.title}; it must be {wanted}")
    return int(every)


def _thetas(path: Path, parameters: Any) -> dict[str, Any]:
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
                f"{path}: rope_parameters.{kind} = {table!r} is not {ModernConfig.title}; it must contain only the "
                "rope_type 'default' and a rope_theta"
            )
        if theta is not None:
            found[_THETAS[kind]] = theta
    return found
