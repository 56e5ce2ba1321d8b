"""Reads a model folder written by transformers into a network of this project."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from bertwright.core.errors import ArtifactError
from bertwright.model.bert.network import BertConfig
from bertwright.model.choice import Labels
from bertwright.model.config import NetworkConfig
from bertwright.model.config_file import read_config_file
from bertwright.model.interop.peer import peer_of
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.saved import model_from, read_tensors
from bertwright.model.stock_config import read_stock_config


def load_stock(folder: Path) -> PreTrainingModel:
    """Load the network of a folder with config.json and model.safetensors, in float32 on the CPU, in training mode.

    Includes the next-sentence head if the file has one. Tensors that are missing or belong to another network raise
    `ArtifactError`, which names them.
    """
    config = read_stock_config(folder / "config.json")
    config, tensors = _with_its_heads(config, _renamed(folder, config, read_tensors(folder / "model.safetensors")))
    return model_from(config, tensors, source=str(folder))


def stock_tensors(folder: Path) -> tuple[dict[str, Tensor], Labels]:
    """Return the tensors of a folder with pre-training heads or a sequence classifier, under this project's names and
    in float32, and the classes of the classifier. Raises as `load_stock` does."""
    path = folder / "config.json"
    config, theirs = read_stock_config(path), read_tensors(folder / "model.safetensors")
    if "classifier.weight" in theirs:
        names = read_config_file(path).get("id2label") or {}
        labels = tuple(str(names.get(str(n), f"LABEL_{n}")) for n in range(len(theirs["classifier.weight"])))
        config = config.model_copy(update={"labels": labels})
    return _renamed(folder, config, theirs), config.labels


def _renamed(folder: Path, config: NetworkConfig, theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    try:
        tensors = peer_of(config).names.to_ours(theirs)
    except ArtifactError as error:
        raise ArtifactError(f"cannot read the weights in {folder}: {error}") from error
    # Some published files are in half precision; this project uses float32 or the precision of the run.
    return {name: tensor.float() for name, tensor in tensors.items()}


def _with_its_heads(config: NetworkConfig, tensors: dict[str, Tensor]) -> tuple[NetworkConfig, dict[str, Tensor]]:
    if not isinstance(config, BertConfig):
        return config, tensors
    if "nsp.classifier.weight" in tensors:
        return config.model_copy(update={"next_sentence": True}), tensors
    # Some masked-language models are saved with a pooler that they do not use.
    return config, {name: tensor for name, tensor in tensors.items() if not name.startswith("bert.pooler.")}
