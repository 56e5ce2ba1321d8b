"""Recognises networks that are called BERT, but that no family here computes, by configuration or names of tensors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class _Foreign:
    title: str
    what: str
    """What sets it apart."""
    class_name: re.Pattern[str]
    """Of its classes and `model_type`, in its configuration."""
    keys: frozenset[str]
    """Keys of its configuration that no other network has."""
    tensor: re.Pattern[str]
    """Of names of its tensors that no other network has."""


_NETWORKS = (
    _Foreign(
        "a MosaicBERT",
        "with gated feed-forward layers, and ALiBi in place of position embeddings",
        re.compile(r"^bert_layers\.|^mosaic_?bert", re.IGNORECASE),
        frozenset({"alibi_starting_size"}),
        re.compile(r"encoder\.layer\.\d+\.(mlp\.gated_layers|attention\.self\.Wqkv)\."),
    ),
    _Foreign(
        "an LTG-BERT, the network of HPLT and of the BabyLM baselines",
        "with disentangled attention to relative positions, and gated feed-forward layers",
        re.compile(r"(^|\.)(ltg|gpt)_?bert", re.IGNORECASE),
        frozenset({"position_bucket_size"}),
        re.compile(r"\.attention\.in_proj_qk\."),
    ),
    _Foreign(
        "a NeoBERT",
        "with rotary positions, SwiGLU layers and RMS norms",
        re.compile(r"(^|\.)neobert", re.IGNORECASE),
        frozenset({"dim_head"}),
        re.compile(r"transformer_encoder\.\d+\.(qkv|ffn\.w12|ffn\.w1)\."),
    ),
)


def foreign_config(config: Mapping[str, Any]) -> str:
    """Say which network of no family here a configuration describes; "" if it is none that is known."""
    code, classes = config.get("auto_map"), config.get("architectures")
    names = [
        str(config.get("model_type", "")),
        *map(str, code.values() if isinstance(code, dict) else ()),
        *map(str, classes if isinstance(classes, list) else ()),
    ]
    return _said(each for each in _NETWORKS if each.keys & config.keys() or any(map(each.class_name.search, names)))


def foreign_tensors(names: Iterable[str]) -> str:
    """As `foreign_config`, by the names of tensors."""
    found = list(names)
    return _said(each for each in _NETWORKS if any(map(each.tensor.search, found)))


def _said(found: Iterable[_Foreign]) -> str:
    return next((f"{each.title}, {each.what}, which no network here computes" for each in found), "")
