"""The network of a config.json as transformers writes it, of any family that we have. Knows no torch."""

from __future__ import annotations

from pathlib import Path

from bertwright.core.errors import RecipeError
from bertwright.model.bert.network import BertConfig
from bertwright.model.config import NetworkConfig
from bertwright.model.config_file import KINDS, read_config_file
from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.modern.network import ModernConfig


def read_stock_config(path: Path) -> NetworkConfig:
    """The network that the file describes, of a BERT without the next-sentence head, of which the file says nothing.

    `RecipeError` where it is none of a family that we have.
    """
    # Each family knows its own words, and the others are not needed for one.
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
            raise RecipeError(f"{path}: model_type = {family!r} is no network that is read here; there are: {known}")
