"""The families of networks: the recipe section `[model]` that chooses one, and a network to the last number.

Each family's sections are in a file of its own. Knows no torch, so that checking a recipe stays quick.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from bertwright.core.errors import RecipeError
from bertwright.model.bert.config import BertModelConfig
from bertwright.model.bert.network import BertConfig
from bertwright.model.choice import validated
from bertwright.model.distilbert.config import DistilBertModelConfig
from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.modern.config import ModernModelConfig
from bertwright.model.modern.network import ModernConfig

Kernel = Literal["sequences", "padded", "varlen"]
"""How attention is computed; `model.attention` has a file for each."""


def kernel_for(device_type: str) -> Kernel:
    """The kernel to run with: `sequences` on a CPU, which it serves best; `padded` on a GPU, which `sequences` would
    keep waiting at every batch."""
    return "sequences" if device_type == "cpu" else "padded"


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
    # Not needed at every start: only where a folder is read, which a training that begins anew does not.
    from bertwright.model.config_file import read_config_file

    values = read_config_file(path)
    family = values.pop("model_type", "bert")
    if family == "bert":
        from bertwright.model.bert.stock_file import read_bert_config

        return validated(BertConfig, read_bert_config(path), path, BertConfig.title)
    for network in NETWORKS:
        if network.family == family:
            return validated(network, values, path, network.title)
    known = ", ".join(network.family for network in NETWORKS)
    raise RecipeError(f"{path}: model_type = {family!r} is no family of networks here; there are: {known}")


def network_of(sections: Mapping[str, Any]) -> NetworkConfig:
    """The network that the sections of a checkpoint describe, but for the number of its entries.

    `RecipeError` where this version does not know it.
    """
    model = sections["model"]
    try:
        if "network" in sections:  # of a configuration file
            family = next(each for each in NETWORKS if each.family == model.get("kind", "bert"))
            return family.model_validate(sections["network"])
        return TypeAdapter[ModelConfig](ModelConfig).validate_python(model).resolve(1)
    except (StopIteration, ValidationError) as error:
        raise RecipeError(f"[model] {dict(model)} is of another version, which this one does not know") from error
