"""The names and the configuration of FlexBERT, the program that trained ModernBERT, in those of transformers.

Of the networks that FlexBERT can describe, ModernBERT is the one that transformers has. Every key that would make
another one is checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bertwright.core.errors import ArtifactError

_RENAMED = (
    (re.compile(r"^bert\.encoder\.layers\."), "model.layers."),
    (re.compile(r"^bert\.(embeddings\.|final_norm\.)"), r"model.\1"),
)
_REQUIRED: Mapping[str, tuple[Any, ...]] = {
    "attention_layer": ("rope", "padded_rope", "unpadded_rope"),
    "bert_layer": ("prenorm", "padded_prenorm", "unpadded_prenorm", "unpadded_compile_prenorm"),
    "embedding_layer": ("sans_pos",),
    "mlp_layer": ("glu",),
    "normalization": ("layernorm", "triton_layernorm"),
    "hidden_act": ("gelu",),
    "head_pred_act": ("gelu",),
    "embed_norm": (True,),
    "final_norm": (True,),
    "head_pred_norm": (True,),
    "skip_first_prenorm": (True,),
    "attn_qkv_bias": (False,),
    "attn_out_bias": (False,),
    "mlp_in_bias": (False,),
    "mlp_out_bias": (False,),
    "head_pred_bias": (False,),
}
"""The values of a ModernBERT, of keys without which FlexBERT describes another network."""
_IF_GIVEN: Mapping[str, tuple[Any, ...]] = {
    "rotary_emb_scale_base": (None,),
    "rotary_emb_interleaved": (False,),
    "local_attn_rotary_emb_dim": (None,),
    "initial_attention_layer": (None, "rope"),
    "initial_bert_layer": (None, "prenorm"),
    "initial_mlp_layer": (None, "glu"),
    "tie_word_embeddings": (True,),
}
_SAME = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "num_hidden_layers": "num_hidden_layers",
    "num_attention_heads": "num_attention_heads",
    "intermediate_size": "intermediate_size",
    "max_position_embeddings": "max_position_embeddings",
    "embedding_dropout": "embed_dropout_prob",
    "mlp_dropout": "mlp_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "decoder_bias": "decoder_bias",
    "global_rope_theta": "rotary_emb_base",
    "initializer_range": "init_std",
    "initializer_cutoff_factor": "init_cutoff_factor",
}
"""Keys of transformers, and those of FlexBERT with the same values."""


def is_flexbert(names: Sequence[str]) -> bool:
    """Whether the tensors of a `state_dict` are those of a FlexBERT."""
    return "bert.embeddings.tok_embeddings.weight" in names


def stock_name(name: str) -> str:
    """The name in transformers of a tensor of FlexBERT."""
    for pattern, ours in _RENAMED:
        name = pattern.sub(ours, name)
    return name


def stock_config(config: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """The configuration of a FlexBERT with the keys of transformers' ModernBERT.

    Raises `ArtifactError`, which names the key, if it is of another network, or damaged.
    """
    try:
        return _stock_config(config, path)
    except (TypeError, KeyError, AttributeError) as error:
        raise ArtifactError(
            f"the configuration of the FlexBERT in {path} is damaged or incomplete ({str(error)[:80]}); put a "
            "config.json of its ModernBERT beside the file"
        ) from error


def _stock_config(config: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    width = config.get("hidden_size", 0) // max(config.get("num_attention_heads", 1), 1)
    allowed = {**_REQUIRED, **{key: values for key, values in _IF_GIVEN.items() if key in config}}
    if "rotary_emb_dim" in config:
        allowed["rotary_emb_dim"] = (None, width)
    for key, values in allowed.items():
        if (value := config.get(key)) not in values:
            raise ArtifactError(
                f"{path} holds a FlexBERT with {key} = {repr(value)[:80]}, which is no ModernBERT (that has "
                f"{values[0]!r}); no network here computes it"
            )
    local, every = config.get("sliding_window", -1), config.get("global_attn_every_n_layers", -1)
    windowed = local > 0
    base = config.get("local_attn_rotary_emb_base", -1)
    if windowed and every < 1:
        raise ArtifactError(f"{path} holds a FlexBERT whose layers all have local attention, which is no ModernBERT")
    return {
        "model_type": "modernbert",
        "architectures": ["ModernBertForMaskedLM"],
        **{ours: config[theirs] for ours, theirs in _SAME.items() if theirs in config},
        "norm_eps": (config.get("norm_kwargs") or {}).get("eps", 1e-5),
        # Without windows, every layer has global attention.
        "local_attention": local if windowed else 128,
        "global_attn_every_n_layers": every if windowed else 1,
        "local_rope_theta": config["rotary_emb_base"] if base == -1 else base,
    }
