"""The families of networks: the recipe section `[model]` that chooses one, and a network to the last number.

Each family's sections are in a file of its own. Knows no torch, so that checking a recipe stays quick.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from bertwright.core.errors import RecipeError
from bertwright.model.bert.config import BertConfig, BertModelConfig, read_bert_config
from bertwright.model.choice import validated
from bertwright.model.config_file import read_config_file
from bertwright.model.distilbert.config import DistilBertConfig, DistilBertModelConfig
from bertwright.model.modern.config import ModernModelConfig
from bertwright.model.modern.network import ModernConfig

Kernel = Literal["sequences", "padded", "varlen"]
"""How attention is computed; `model.attention` has a file for each."""


def _bert_unless_said(value: Any) -> Any:
    """`[model]` without a kind is a BERT, as it was before there were other families."""
    return {"kind": "bert", **value} if isinstance(value, dict) else value


ModelConfig = Annotated[
    BertModelConfig | ModernModelConfig | DistilBertModelConfig,
    Field(discriminator="kind"),
    BeforeValidator(_bert_unless_said),
]
"""The network to train: the union of the families' sections."""
NetworkConfig = BertConfig | ModernConfig | DistilBertConfig
"""A network to the last number: the union of the families'."""
NETWORKS: tuple[type[NetworkConfig], ...] = (BertConfig, ModernConfig, DistilBertConfig)
"""The families of networks."""


def read_network_config(path: Path) -> NetworkConfig:
    """The network of a model folder's config.json, whose `model_type` names the family; without one it is a BERT.

    `RecipeError` where it describes none of the families' networks.
    """
    values = read_config_file(path)
    family = values.pop("model_type", "bert")
    if family == "bert":
        return validated(BertConfig, read_bert_config(path), path, BertConfig.title)
    for network in NETWORKS:
        if network.family == family:
            return validated(network, values, path, network.title)
    known = ", ".join(network.family for network in NETWORKS)
    raise RecipeError(f"{path}: model_type = {family!r} is no family of networks here; there are: {known}")
