"""Reads the weights of a network trained before: of this project's folders, or of one written by transformers."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from bertwright.core.errors import ArtifactError
from bertwright.model.bert.network import BertConfig
from bertwright.model.config import NetworkConfig
from bertwright.model.interop.peer import peer_of
from bertwright.model.interop.vector_files import gives_unit_means
from bertwright.model.model import HeadlessModel, Model
from bertwright.model.pretrained_config import Pretrained, read_pretrained
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.saved import load_network, model_from, network_from


def load_stock(folder: Path) -> PreTrainingModel:
    """Load the network of a folder in the format of transformers, in float32 on the CPU, in training mode.

    Includes the next-sentence head if the file has one. Tensors that are missing or belong to another network raise
    `ArtifactError`, which names them.
    """
    given = read_pretrained(folder)
    names = peer_of(given.network).names
    try:
        tensors = names.to_ours(given.weights.read())
    except ArtifactError as error:
        raise ArtifactError(f"cannot read the weights in {folder}: {error}") from error
    config, tensors = _with_its_heads(given.network, tensors)
    return model_from(config, {name: tensor.float() for name, tensor in tensors.items()}, source=str(folder))


def load_headless(given: Pretrained) -> HeadlessModel | Model:
    """Load the encoder of a folder that was saved without heads, in float32 on the CPU; as one trained for vectors if
    the files beside it say that its vectors are means of length 1."""
    tensors = load_tensors(given)
    if gives_unit_means(given.folder):
        config = given.network.model_copy(update={"head": "vector"})
        kept = {name: tensors[name] for name in config.tensors if name in tensors}
        return network_from(config, kept, source=str(given.folder))
    with torch.device("meta"):
        model = HeadlessModel(given.network)
    kept = {name: tensors[name] for name in model.state_dict() if name in tensors}
    if missing := [name for name in model.state_dict() if name not in kept]:
        raise ArtifactError(f"{given.folder} has no tensor {missing[0]}. Restore it from a copy, or save it again.")
    model.load_state_dict(kept, assign=True)
    return model


def load_tensors(given: Pretrained) -> dict[str, Tensor]:
    """Return the tensors of a network trained before under this project's names, in float32 on the CPU, without those
    of heads that this project does not have. The files of an artifact are verified first."""
    if given.artifact is not None:
        prefix = given.folder.relative_to(given.path).as_posix()
        for name in given.artifact.names(f"{prefix}/"):
            given.artifact.file(name)
    if not given.stock:
        return load_network(given.folder).state_dict()
    left_out = set(given.unknown)
    kept = {name: tensor for name, tensor in given.weights.read().items() if name not in left_out}
    # Some published files are in half precision; this project uses float32 or the precision of the run.
    return {name: tensor.float() for name, tensor in given.names.to_ours(kept).items()}


def _with_its_heads(config: NetworkConfig, tensors: dict[str, Tensor]) -> tuple[NetworkConfig, dict[str, Tensor]]:
    if not isinstance(config, BertConfig):
        return config, tensors
    if "nsp.classifier.weight" in tensors:
        return config.model_copy(update={"next_sentence": True}), tensors
    # Some masked-language models are saved with a pooler that they do not use.
    return config, {name: tensor for name, tensor in tensors.items() if not name.startswith("bert.pooler.")}
