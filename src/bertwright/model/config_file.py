"""Configuration files of networks by Google, NVIDIA and Hugging Face, read key by key. Knows no torch."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from bertwright.core.errors import RecipeError
from bertwright.core.files import MAX_JSON, read_bytes
from bertwright.core.json_values import parse_json

SAME_NETWORK: dict[str, tuple[Any, ...] | None] = {
    "model_type": ("bert",),
    "position_embedding_type": ("absolute",),
    "is_decoder": (False,),
    "is_encoder_decoder": (False,),
    "add_cross_attention": (False,),
    "cross_attention_hidden_size": (None,),
    "tie_word_embeddings": (True,),
    "pruned_heads": ({}, None),
    "output_all_encoded_layers": (False,),
    "directionality": ("bidi",),
    "pooler_type": ("first_token_transform",),
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
    "problem_type": None,
    "output_attentions": None,
    "output_hidden_states": None,
    "return_dict": None,
    # Written by Google's multilingual release; no code of theirs reads them.
    "pooler_fc_size": None,
    "pooler_num_attention_heads": None,
    "pooler_num_fc_layers": None,
    "pooler_size_per_head": None,
}
"""The values under which the network is the same one; None: any value, because the key concerns files, classifiers or
output, not the network."""


def read_config_file(path: Path) -> dict[str, Any]:
    """The keys of a configuration file; a file without an object of keys is a `RecipeError`."""
    try:
        values = parse_json(read_bytes(path, MAX_JSON))
    except (OSError, ValueError) as error:
        raise RecipeError(f"cannot read the model configuration {path}: {error}; name a JSON file") from error
    if not isinstance(values, dict):
        raise RecipeError(f"{path} holds a JSON {type(values).__name__}; a model configuration is an object of keys")
    return values


def read_bert_file(path: Path, fields: Collection[str]) -> dict[str, Any]:
    """The values of `fields` in a configuration file of a BERT.

    An unknown key, or a known one whose value means another network, is a `RecipeError` naming it.
    """
    own: dict[str, Any] = {}
    for key, value in read_config_file(path).items():
        if key in fields:
            own[key] = value
        # A key that is passed over may be one that changes the network: nobody would notice before the scores.
        elif key not in SAME_NETWORK:
            raise RecipeError(f"{path}: unknown key {key!r}; correct its spelling or remove it")
        elif (allowed := SAME_NETWORK[key]) is not None and value not in allowed:
            raise RecipeError(f"{path}: {key} = {value!r} is not BERT; it must be {allowed[0]!r} or absent")
    return own
