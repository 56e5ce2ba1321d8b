"""Reads and writes a model folder: config.json, model.safetensors and, optionally, vocab.txt.

Tensors are stored under this project's names; the tied decoder is stored once, as the token embedding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.core.files import atomic_file, cannot_write, make_folder, write_atomic, write_json
from bertwright.core.tensors import tensor_shapes
from bertwright.model.config import Kernel, NetworkConfig, read_network_config
from bertwright.model.family import to_json
from bertwright.model.model import Model, build_model
from bertwright.model.pretraining import PreTrainingModel

MODEL_FILES = ("config.json", "model.safetensors", "vocab.txt")
"""The files of a model folder with a vocabulary."""


def save_model(folder: Path, config: NetworkConfig, weights: Mapping[str, Tensor], vocab: bytes | None = None) -> None:
    """Write the `weights` of a network, by name, to `folder`; each file is written completely or not at all. `vocab` is
    the content of vocab.txt."""
    make_folder(folder)
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    write_safetensors(folder / "model.safetensors", tensors)
    if vocab is not None:
        write_atomic(folder / "vocab.txt", vocab)
    write_json(folder / "config.json", config_json(config))


def write_safetensors(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Write contiguous CPU tensors, completely or not at all. Raises `DataError` if `path` cannot be written."""
    try:
        # Not via bytes, which would be a second copy of all tensors in memory.
        with atomic_file(path) as temporary:
            save_file(dict(tensors), temporary, metadata)
    except SafetensorError as error:
        raise cannot_write(path, OSError(str(error))) from error


def config_json(config: NetworkConfig) -> dict[str, Any]:
    """Return the content of a model folder's config.json: the network, and its family as `model_type`."""
    return {"model_type": config.family, **to_json(config)}


def load_model(folder: Path, kernel: Kernel = "sequences") -> PreTrainingModel:
    """As `load_network`, for a network with pre-training heads. Raises `ArtifactError` for a classifier."""
    model = load_network(folder, kernel)
    if not isinstance(model, PreTrainingModel):
        labels = ", ".join(model.config.labels)
        what = f"a classifier ({labels})" if labels else "an encoder for vectors"
        raise ArtifactError(
            f"the model in {folder} is {what}, without the head that predicts masked tokens. Give the folder of a "
            "pre-training."
        )
    return model


def load_network(folder: Path, kernel: Kernel = "sequences") -> Model:
    """Load the network that `save_model` wrote, on the CPU, in training mode. Draws nothing from torch's generator.

    Raises `ArtifactError`, which names the file or tensor, if a file is absent or damaged, or if a tensor is missing,
    unexpected, or of another shape or dtype.
    """
    try:
        config = read_network_config(folder / "config.json")
    except RecipeError as error:
        raise ArtifactError(
            f"cannot load the model in {folder}: {error}. Restore it, or save the model again"
        ) from error
    tensors = read_tensors(folder / "model.safetensors")
    return network_from(config, tensors, kernel, source=str(folder))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file. The file is memory-mapped: tensors are read on access and take no
    memory of their own. Raises `ArtifactError`, which names the file, if it is absent or damaged."""
    try:
        tensor_shapes(path)
        tensors: dict[str, Tensor] = load_file(path)
    except (FileNotFoundError, SafetensorError) as error:
        raise ArtifactError(f"cannot load {path}: {error}. Restore it from a copy, or make it again.") from error
    return tensors


def model_from(
    config: NetworkConfig, tensors: dict[str, Tensor], kernel: Kernel = "sequences", source: str = "the given tensors"
) -> PreTrainingModel:
    """As `network_from`, for a configuration without classes."""
    model = network_from(config, tensors, kernel, source)
    assert isinstance(model, PreTrainingModel)
    return model


def network_from(
    config: NetworkConfig, tensors: dict[str, Tensor], kernel: Kernel = "sequences", source: str = "the given tensors"
) -> Model:
    """Build a network that uses `tensors` without copying, under this project's names. Strict, as `load_network`."""
    with torch.device("meta"), _Undrawn():  # no memory and no random numbers for weights that are replaced
        model = build_model(config, kernel)
    expected = model.state_dict()
    faults = [f"missing {name}" for name in expected if name not in tensors]
    faults += [f"unexpected {name}" for name in tensors if name not in expected]
    faults += [
        f"{name} has shape {list(tensors[name].shape)}, but the configuration requires {list(tensor.shape)}"
        for name, tensor in expected.items()
        if name in tensors and tensors[name].shape != tensor.shape
    ]
    faults += [
        f"{name} is {tensors[name].dtype}, not {tensor.dtype}"
        for name, tensor in expected.items()
        if name in tensors and tensors[name].dtype != tensor.dtype
    ]
    if faults:
        shown = "; ".join(faults[:5]) + (f"; and {len(faults) - 5} more" if len(faults) > 5 else "")
        raise ArtifactError(
            f"{source} does not contain the model that its configuration describes: {shown}. Use weights and "
            "configuration that belong together"
        )
    model.load_state_dict(tensors, assign=True)
    return model


class _Undrawn(TorchFunctionMode):
    """Skips the normal initialisation of tensors. On the meta device it has no effect, but torch would import its
    compiler for it, which takes a second of CPU time in each process that reads a model.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        return given["tensor"] if func is nn.init.normal_ else func(*args, **given)
