"""Reads a BERT configuration file of Google, NVIDIA or Hugging Face. Does not import torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bertwright.model.bert.network import BertConfig
from bertwright.model.config_file import Allowed, own_values, read_config_file
from bertwright.model.section_helpers import validated

SAME_NETWORK: Allowed = {
    "model_type": ("bert",),
    "position_embedding_type": ("absolute",),
    "output_all_encoded_layers": (False,),
    "directionality": ("bidi",),
    "pooler_type": ("first_token_transform",),
    # Google's multilingual release has these keys, but its code does not read them.
    "pooler_fc_size": None,
    "pooler_num_attention_heads": None,
    "pooler_num_fc_layers": None,
    "pooler_size_per_head": None,
}
"""Keys of other programs' files, in addition to those of every family, with the values that mean a BERT."""


def read_bert_config(path: Path) -> dict[str, Any]:
    """Return the `BertConfig` values of a configuration file by Google, NVIDIA, Hugging Face or this project.

    Raises `RecipeError` as `own_values` does, and if the values describe no valid network.
    """
    own = own_values(path, read_config_file(path), BertConfig.model_fields, SAME_NETWORK, BertConfig.title)
    validated(BertConfig, own, path, BertConfig.title)
    return own
