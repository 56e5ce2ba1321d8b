"""Reads network configuration files of Google, NVIDIA and Hugging Face key by key. Does not import torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertwright.core.errors import RecipeError
from bertwright.core.files import MAX_JSON, read_bytes
from bertwright.core.json_values import parse_json
from bertwright.model.family import Allowed, NetworkSection, validated

ANY_FAMILY: Allowed = {
    "is_decoder": (False,),
    "is_encoder_decoder": (False,),
    "add_cross_attention": (False,),
    "cross_attention_hidden_size": (None,),
    "tie_word_embeddings": (True,),
    "pruned_heads": ({}, None),
    "architectures": None,
    "_name_or_path": None,
    "transformers_version": None,
    "torch_dtype": None,
    "dtype": None,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": None,
    "use_cache": None,
    "gradient_checkpointing": None,
    "chunk_size_feed_forward": None,
    "classifier_dropout": None,
    "id2label": None,
    "label2id": None,
    "num_labels": None,
    "problem_type": None,
    "output_attentions": None,
    "output_hidden_states": None,
    "return_dict": None,
}
"""Keys that transformers writes for every network."""

KINDS = {"bert": "bert", "modernbert": "modern", "distilbert": "distilbert"}
"""The `model.kind` that reads the files of each `model_type`."""


def read_config_file(path: Path) -> dict[str, Any]:
    """Return the keys and values of a configuration file. Raises `RecipeError` if it is not a JSON object."""
    if path.is_dir():
        raise RecipeError(f"the model configuration {path} is a folder; give the path of its config.json")
    try:
        values = parse_json(read_bytes(path, MAX_JSON))
    except (OSError, ValueError) as error:
        raise RecipeError(
            f"cannot read the model configuration {path}: {error}; give the path of a JSON file"
        ) from error
    if not isinstance(values, dict):
        raise RecipeError(f"{path} holds a JSON {type(values).__name__}, but a model configuration must be an object")
    return values


def read_values(path: Path, family: type[NetworkSection]) -> dict[str, Any]:
    """As `values_of`, from a configuration file."""
    return values_of(read_config_file(path), path, family)


def values_of(config: Mapping[str, Any], path: Path, family: type[NetworkSection]) -> dict[str, Any]:
    """Return the values of a family's network from the configuration of another program or of this one; `path` is
    where it was read.

    Raises `RecipeError` for an unknown key, for a known key whose value means another network, and if the values
    describe no valid network.
    """
    own: dict[str, Any] = {}
    known = {**ANY_FAMILY, **family.same_network}
    for key, value in family.in_our_words(path, config).items():
        if key in family.model_fields:
            own[key] = value
        # An ignored key might change the network, which would show only in the scores.
        elif key not in known:
            raise RecipeError(f"{path}: unknown key {key!r}; correct its spelling or remove it")
        elif (right := known[key]) is not None and value not in right:
            kind = KINDS.get(value) if key == "model_type" and isinstance(value, str) else None
            remedy = f"set model.kind={kind}" if kind else f"it must be {right[0]!r} or absent"
            raise RecipeError(f"{path}: {key} = {value!r} is not {family.title}; {remedy}")
    validated(family, own, path)
    return own
