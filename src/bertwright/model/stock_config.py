"""The network of a config.json as transformers writes it, of any family that we have. Knows no torch."""

from __future__ import annotations

from pathlib import Path

from bertwright.core.errors import RecipeError
from bertwright.model.bert.config import BertConfig, read_bert_config
from bertwright.model.config import NetworkConfig
from bertwright.model.config_file import KINDS, read_config_file
from bertwright.model.distilbert.config import DistilBertConfig, read_distilbert_config
from bertwright.model.modern.network import ModernConfig
from bertwright.model.modern.stock_file import read_modern_config


def read_stock_config(path: Path) -> NetworkConfig:
    """The network that the file describes, of a BERT without the next-sentence head, of which the file says nothing.

    `RecipeError` where it is none of a family that we have.
    """
    family = read_config_file(path).get("model_type")
    match family:
        case "bert":
            return BertConfig(**{**read_bert_config(path), "next_sentence": False})
        case "modernbert":
            return ModernConfig(**read_modern_config(path))
        case "distilbert":
            return DistilBertConfig(**read_distilbert_config(path))
        case _:
            known = ", ".join(KINDS)
            raise RecipeError(f"{path}: model_type = {family!r} is no network that is read here; there are: {known}")
