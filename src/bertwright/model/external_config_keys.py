"""Keys of other programs' model configurations that are not in `BertConfig`. Knows no torch."""

from __future__ import annotations

from typing import Any

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
