"""Where programs put the weights of a network in a file of `torch.save`, and how they call them: one table each.

NVIDIA's and ONNX Runtime's training examples, MosaicML's Composer (and with it the programs that trained ModernBERT and
MosaicBERT), DeepSpeed, Lightning, `accelerate` and plain `state_dict`s. What is beside the weights is counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bertwright.core.errors import ArtifactError
from bertwright.model.importers.flexbert import is_flexbert, stock_config, stock_name
from bertwright.model.importers.pickle_machine import Built
from bertwright.model.importers.torch_file import MOST_SAID, TorchFile, is_tensor, tensors_in

_PLACES: tuple[tuple[str, ...], ...] = (
    (),  # the state_dict itself
    ("state", "model"),  # Composer
    ("model",),  # NVIDIA's DeepLearningExamples, ONNX Runtime's training examples
    ("module",),  # DeepSpeed
    ("state_dict",),  # Lightning
    ("model_state_dict",),  # PyTorch's tutorials
)
"""The keys under which a `state_dict` is found; the first with tensors is taken."""
_WRAPPERS = ("module.", "_orig_mod.", "_forward_module.", "wrapper_.", "model_.")
"""Beginnings of all names, from classes around the network: of torch (distributed, compiled), Lightning, and ONNX
Runtime."""
_INSIDE_MODEL = (
    "bert.",
    "distilbert.",
    "model.",
    "embeddings.word_embeddings.",
    "encoder.layer.",
    "transformer.layer.",
)
"""What follows "model." if that is a class around the network (Composer, Lightning), not a ModernBERT's encoder."""
_NOT_WEIGHTS = (
    (re.compile(r"(^|\.)(Moment_[12]|Update_Count)_|^(Step|Update_Count)$"), "moments of the optimizer"),
    (re.compile(r"_fp16$"), "copies in half precision"),
    (re.compile(r"_metrics?\.|^metrics?\."), "measurements"),
)
"""Entries of a `state_dict` that are no weights: of ONNX Runtime, whose trainer keeps its moments there, and of
Composer."""
_BESIDE = (
    (re.compile("optim|amp|scaler", re.IGNORECASE), "moments of the optimizer"),
    (re.compile("master"), "copies of the weights in single precision"),
    (re.compile("ema|average", re.IGNORECASE), "averaged weights"),
    (re.compile("rng|random", re.IGNORECASE), "states of random generators"),
)
"""What tensors beside the weights are, by the key above them."""
_CONFIG = ("state", "integrations", "huggingface", "model", "config", "content")
"""Where Composer keeps the configuration of a network of transformers."""
_MAX_CONFIG = 10_000


@dataclass(frozen=True)
class Checkpoint:
    """The weights in a file of `torch.save`."""

    file: TorchFile
    tensors: Mapping[str, tuple[str, Built]]
    """By the name in transformers: the name in the file, and the description of the tensor."""
    left_out: Mapping[str, int]
    """As `Weights.left_out`."""
    config: Mapping[str, Any] | None
    """As `Weights.config`."""


def checkpoint_of(file: TorchFile) -> Checkpoint:
    """Find the weights in a file. Raises `ArtifactError` if there are none, or two with one name."""
    path, state = _state_dict(file)
    tensors, left_out = dict[str, Built](), dict[str, int]()
    for name, value in state.items():
        kind = next((kind for pattern, kind in _NOT_WEIGHTS if pattern.search(str(name))), "")
        if not is_tensor(value) or not isinstance(name, str):
            kind = kind or "values that are no tensors"
        if kind:
            left_out[kind] = left_out.get(kind, 0) + 1
        else:
            tensors[name] = value
    flex = is_flexbert(list(names := _unwrapped_names(list(tensors))))
    stock = {source: stock_name(name) if flex else _stock_name(name) for name, source in names.items()}
    if len(by_name := {name: source for source, name in stock.items()}) < len(stock):
        twice = next(name for source, name in stock.items() if by_name[name] != source)
        raise ArtifactError(
            f"{file.path} has two tensors called {twice[:MOST_SAID]}. Save the network's state_dict again."
        )
    config = _config(file)
    return Checkpoint(
        file,
        {name: (source, tensors[source]) for name, source in by_name.items()},
        _beside(file.content, path, state, left_out),
        stock_config(config, file.path) if flex and config is not None else config,
    )


def _state_dict(file: TorchFile) -> tuple[tuple[str, ...], Mapping[Any, Any]]:
    """The keys that lead to the `state_dict` in a file, and the `state_dict`."""
    for path in _PLACES:
        found = _mapping(_inside(file.content, path))
        if found is not None and any(map(is_tensor, found.values())):
            return path, found
    content = _mapping(file.content)
    if content is None:
        what = (
            f"an object of the class {str(file.content.of)[:100]}" if isinstance(file.content, Built) else "no network"
        )
    else:
        keys = [str(key)[:40] for key in list(content)[:8]]
        what = f"no weights where a program puts them (its keys: {', '.join(keys) or 'none'})"
    raise ArtifactError(
        f"{file.path} holds {what}. Save the network's state_dict: torch.save(model.state_dict(), FILE), or, with "
        "transformers, model.save_pretrained(FOLDER)."
    )


def _inside(content: Any, path: tuple[str, ...]) -> Any:
    """The value under `path`, one key for each dictionary; None if there is none."""
    for key in path:
        mapping = _mapping(content)
        content = None if mapping is None else mapping.get(key)
    return content


def _mapping(value: Any) -> Mapping[Any, Any] | None:
    """A dictionary, or the entries of an object that is one."""
    if isinstance(value, dict):
        return value
    return value.items if isinstance(value, Built) and value.items else None


def _unwrapped_names(names: list[str]) -> dict[str, str]:
    """Map the names in a `state_dict` without what classes around the network put before them to the full ones."""
    short = {name: name for name in names}
    while prefix := next((each for each in _WRAPPERS if short and all(name.startswith(each) for name in short)), ""):
        short = {name.removeprefix(prefix): full for name, full in short.items()}
    inside = tuple(f"model.{name}" for name in _INSIDE_MODEL)
    if any(name.startswith(inside) for name in short):
        # Others, such as those of a ModernBERT's head, may have no such beginning.
        without = {name.removeprefix("model."): full for name, full in short.items()}
        short = without if len(without) == len(short) else short
    return short


def _stock_name(name: str) -> str:
    """The name in transformers of a tensor of NVIDIA's BERT, whose activations are parts of its linear layers; any
    other name is unchanged."""
    return re.sub(r"\.dense_act\.(weight|bias)$", r".dense.\1", name)


def _beside(
    content: Any, path: tuple[str, ...], state: Mapping[Any, Any], left_out: Mapping[str, int]
) -> Mapping[str, int]:
    """Count the tensors that are not in the `state_dict`, in the dictionaries on the way to it."""
    counts, seen = dict(left_out), {id(state)}
    tensors_in(list(state.values()), seen)  # each counts once, where it is a weight
    for depth, chosen in enumerate(path):
        around = _mapping(_inside(content, path[:depth])) or {}
        for key, value in around.items():
            if key == chosen or not (number := tensors_in(value, seen)):
                continue
            kind = next((kind for pattern, kind in _BESIDE if pattern.search(str(key))), f"tensors of {str(key)[:40]}")
            counts[kind] = counts.get(kind, 0) + number
    return counts


def _config(file: TorchFile) -> Mapping[str, Any] | None:
    found = _inside(file.content, _CONFIG)
    if not isinstance(found, dict):
        return None
    budget = [_MAX_CONFIG]
    try:
        return {str(key): _plain(value, budget) for key, value in found.items()}
    except ValueError as error:
        raise ArtifactError(
            f"the configuration of the network in {file.path} {error}; put its config.json beside the file"
        ) from error


def _plain(value: Any, budget: list[int], depth: int = 0) -> Any:
    """A copy of a value of JSON. Raises `ValueError` if it is none, or too large."""
    budget[0] -= 1
    if budget[0] < 0 or depth > 8:
        raise ValueError("is too large")
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            return [_plain(each, budget, depth + 1) for each in value]
        case dict():
            return {str(key): _plain(each, budget, depth + 1) for key, each in value.items()}
        case _:
            raise ValueError("is not one of JSON")
