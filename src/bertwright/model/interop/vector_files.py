"""What the files of sentence-transformers beside a network say of the vector of a text. Does not import torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bertwright.core.files import MAX_JSON, read_bytes
from bertwright.core.json_values import parse_json

_OTHER_MODES = ("cls_token", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")


def gives_unit_means(folder: Path) -> bool:
    """Whether the vector of a text is the mean of its tokens' last hidden states, divided by its length."""
    modules = _read(folder / "modules.json", list)
    if modules is None or not all(isinstance(module, dict) for module in modules):
        return False
    kinds = [str(module.get("type", "")).rpartition(".")[2] for module in modules]
    if kinds != ["Transformer", "Pooling", "Normalize"]:
        return False
    pooling = _read(folder / str(modules[1].get("path", "")) / "config.json", dict) or {}
    if "pooling_mode" in pooling:  # from version 5 on
        return bool(pooling["pooling_mode"] == "mean")
    others = any(pooling.get(f"pooling_mode_{mode}") for mode in _OTHER_MODES)
    return bool(pooling.get("pooling_mode_mean_tokens")) and not others


def prompts_in(folder: Path) -> dict[str, str]:
    """What is read before a text, by the kind of text: "query" for one that searches, "document" for one that is
    found."""
    prompts = (_read(folder / "config_sentence_transformers.json", dict) or {}).get("prompts")
    return {name: text for name, text in prompts.items() if isinstance(text, str)} if isinstance(prompts, dict) else {}


def _read(path: Path, kind: type) -> Any:
    """The JSON of a file, None if there is none of this kind."""
    try:
        value = parse_json(read_bytes(path, MAX_JSON))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, kind) else None
