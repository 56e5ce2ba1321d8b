"""A configuration file of a BERT, by Google, NVIDIA or Hugging Face. Knows no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bertwright.model.bert.network import BertConfig
from bertwright.model.choice import validated
from bertwright.model.config_file import Allowed, own_values, read_config_file

SAME_NETWORK: Allowed = {
    "model_type": ("bert",),
    "position_embedding_type": ("absolute",),
    "output_all_encoded_layers": (False,),
    "directionality": ("bidi",),
    "pooler_type": ("first_token_transform",),
    # Written by Google's multilingual release; no code of theirs reads them.
    "pooler_fc_size": None,
    "pooler_num_attention_heads": None,
    "pooler_num_fc_layers": None,
    "pooler_size_per_head": None,
}
"""Keys of other programs' files beside those of every family, with the values that mean a BERT."""


def read_bert_config(path: Path) -> dict[str, Any]:
    """The `BertConfig` values of a configuration file by Google, NVIDIA, Hugging Face or this project.

    A `RecipeError` as for `own_values`, and where the values describe no network.
    """
    own = own_values(path, read_config_file(path), BertConfig.model_fields, SAME_NETWORK, BertConfig.title)
    validated(BertConfig, own, path, BertConfig.title)
    return own
