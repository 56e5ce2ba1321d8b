"""The families of networks: the recipe section `[model]` that selects one, and complete network configurations.

Each family defines its sections in its own module. Does not import torch, so that checking a recipe stays fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from bertwright.core.errors import RecipeError
from bertwright.model.bert.config import BertModelConfig
from bertwright.model.bert.network import BertConfig
from bertwright.model.distilbert.config import DistilBertModelConfig
from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.family import validated
from bertwright.model.modern.config import ModernModelConfig
from bertwright.model.modern.network import ModernConfig

Kernel = Literal["sequences", "padded", "varlen", "triton"]
"""How attention is computed; `model.attention` has a module for each kernel."""
LayerKernels = Literal["torch", "triton"]
"""How what follows a product is computed; `model.fused` has both."""
VARLEN_CAPABILITY = (8, 0)
"""Lowest compute capability of an NVIDIA GPU that the kernels `varlen` and `triton` support (Ampere)."""
_WIDEST: dict[str, int] = {"varlen": 256, "triton": 128}
"""Widest heads of the kernels for GPUs."""


def kernel_for(device_type: str) -> Kernel:
    """Return the kernel to use: `sequences` on a CPU, where it is fastest; `padded` on a GPU, because `sequences` would
    synchronise with the GPU at every batch."""
    return "sequences" if device_type == "cpu" else "padded"


def unsupported_heads(kernel: str, network: NetworkConfig, whose: str) -> str:
    """Return why a kernel for GPUs does not support the attention heads of a network, which `whose` names, and what to
    do; "" if it does, as every kernel for any device does."""
    width, widest = network.hidden_size // network.num_attention_heads, _WIDEST.get(kernel)
    if widest is None or (width % 8 == 0 and width <= widest):
        return ""
    return (
        f"supports heads whose width is a multiple of 8 and at most {widest}, but those of {whose} are {width} wide; "
        "set train.attention=padded"
    )


def _bert_unless_said(value: Any) -> Any:
    """Default the kind of `[model]` to BERT."""
    return {"kind": "bert", **value} if isinstance(value, dict) else value


ModelConfig = Annotated[
    BertModelConfig | ModernModelConfig | DistilBertModelConfig,
    Field(discriminator="kind"),
    BeforeValidator(_bert_unless_said),
]
"""The network to train: the union of the families' recipe sections."""
NetworkConfig = BertConfig | ModernConfig | DistilBertConfig
"""A complete network configuration: the union of the families' configurations."""
NETWORKS: tuple[type[NetworkConfig], ...] = (BertConfig, ModernConfig, DistilBertConfig)
"""The network configurations of all families."""
PEERS = ("bert", "modern", "distilbert")
"""The families that stock transformers has, too. Only these can be exported: `interop.peer` has their peers."""


GOOGLE_CONFIG = "bert_config.json"
"""The name of the configuration in Google's and NVIDIA's releases."""


def without_peer(network: NetworkConfig) -> str:
    """Return why a network cannot be exported, as a sentence; "" if it can."""
    # By name, because a family may be a variant of another, with its settings and other tensors.
    if network.family in PEERS:
        return ""
    known = ", ".join(PEERS)
    return f"model.kind = {network.family}: stock transformers has no such network to export to, only {known}."


def read_network_config(path: Path) -> NetworkConfig:
    """Read the network of a model folder's config.json. `model_type` names the family; the default is BERT.

    Raises `RecipeError` if the file describes no network of a known family.
    """
    # Imported lazily: needed only to read a folder, which a training from scratch does not do.
    from bertwright.model.config_file import read_config_file, read_values

    values = read_config_file(path)
    family = values.pop("model_type", "bert")
    if family == "bert":
        return validated(BertConfig, read_values(path, BertConfig), path)
    for network in NETWORKS:
        if network.family == family:
            return validated(network, values, path)
    known = ", ".join(network.family for network in NETWORKS)
    raise RecipeError(f"{path}: model_type = {family!r} is not a supported family of networks; supported are: {known}")


def read_stock_config(path: Path) -> NetworkConfig:
    """As `stock_network`, from a config.json of transformers."""
    from bertwright.model.config_file import read_config_file

    return stock_network(read_config_file(path), path)


def stock_network(config: Mapping[str, Any], path: Path) -> NetworkConfig:
    """Return the network that a configuration of transformers describes, or Google's bert_config.json, which names no
    `model_type`; `path` is where it was read. A BERT gets no next-sentence head, because the file does not state
    whether it has one.

    Raises `RecipeError` if the network is of no supported family.
    """
    from bertwright.model.config_file import KINDS, values_of
    from bertwright.model.importers.foreign import foreign_config

    if foreign := foreign_config(config):
        raise RecipeError(f"{path}: this is {foreign}")
    family = config.get("model_type", "bert" if path.name == GOOGLE_CONFIG else None)
    for network in NETWORKS:
        if isinstance(family, str) and KINDS.get(family) == network.family:
            heads = {"next_sentence": False} if network is BertConfig else {}
            return validated(network, values_of(config, path, network) | heads, path)
    known = ", ".join(KINDS)
    raise RecipeError(f"{path}: model_type = {family!r} is not a network that can be read; supported are: {known}")


def network_of(sections: Mapping[str, Any]) -> NetworkConfig:
    """Return the network that the sections of a checkpoint describe, except for its vocabulary size.

    Raises `RecipeError` if this version does not know the network.
    """
    model = sections["model"]
    try:
        if "network" in sections:  # the values of a configuration file
            family = next(each for each in NETWORKS if each.family == model.get("kind", "bert"))
            return family.model_validate(sections["network"])
        return TypeAdapter[ModelConfig](ModelConfig).validate_python(model).resolve(1)
    except (StopIteration, ValidationError) as error:
        raise RecipeError(
            f"[model] {dict(model)} was written by another version and cannot be read by this one"
        ) from error


_ROWS = ("embeddings.token.weight", "mlm.bias")


def has_row_per_entry(name: str) -> bool:
    """Whether the tensor of this name has a row for each entry of the vocabulary."""
    return name.endswith(_ROWS)
