"""Reads the network of a transformers config.json, of any supported family. Does not import torch."""

from __future__ import annotations

from pathlib import Path

from bertwright.core.errors import RecipeError
from bertwright.model.bert.network import BertConfig
from bertwright.model.config import NetworkConfig
from bertwright.model.config_file import KINDS, read_config_file
from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.modern.network import ModernConfig


def read_stock_config(path: Path) -> NetworkConfig:
    """Return the network that the file describes. A BERT gets no next-sentence head, because the file does not state
    whether it has one.

    Raises `RecipeError` if the network is of no supported family.
    """
    # Imported lazily, because only one family's reader is needed.
    family = read_config_file(path).get("model_type")
    match family:
        case "bert":
            from bertwright.model.bert.stock_file import read_bert_config

            return BertConfig(**{**read_bert_config(path), "next_sentence": False})
        case "modernbert":
            from bertwright.model.modern.stock_file import read_modern_config

            return ModernConfig(**read_modern_config(path))
        case "distilbert":
            from bertwright.model.distilbert.stock_file import read_distilbert_config

            return DistilBertConfig(**read_distilbert_config(path))
        case _:
            known = ", ".join(KINDS)
            raise RecipeError(
                f"{path}: model_type = {family!r} is not a network that can be read; supported are: {known}"
            )
