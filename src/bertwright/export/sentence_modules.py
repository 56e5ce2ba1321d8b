"""The modules of a sentence-transformers folder: how it makes a vector of the network's hidden states, and its prompts.

An import keeps them as they are, because the vectors of a model depend on each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.core.errors import ArtifactError
from bertwright.core.files import MAX_JSON, make_folder, read_bytes, write_atomic, write_json
from bertwright.core.json_values import parse_json
from bertwright.core.tensors import tensor_shapes

MODULES = "modules.json"
_KNOWN = ("Transformer", "Pooling", "Dense", "Normalize")
_BESIDE = ("config_sentence_transformers.json", "sentence_bert_config.json")
"""Prompts and similarity, and the longest text."""


@dataclass(frozen=True)
class SentenceModules:
    """The modules of a folder, in order."""

    folder: Path
    network: Path
    """The folder of the network, whose own file says how long texts may be."""
    listed: Sequence[Mapping[str, Any]]
    """As modules.json has them."""

    @property
    def names(self) -> list[str]:
        """The names of the modules after the network, such as ["Pooling", "Normalize"]."""
        return [_kind(each) for each in self.listed[1:]]


def read_modules(folder: Path, network: Path) -> SentenceModules | None:
    """The modules that `folder` lists; None if it has no such list.

    Raises `ArtifactError` if it is damaged, or names a module that is not known or whose files cannot be read.
    """
    if not (folder / MODULES).is_file():
        return None
    listed = _json(folder / MODULES)
    if not isinstance(listed, list) or not listed or not all(isinstance(each, dict) for each in listed):
        raise ArtifactError(f"{folder / MODULES} is no list of modules. Restore it, or remove it to import without.")
    for number, each in enumerate(listed):
        kind, path = _kind(each), str(each.get("path", ""))
        if kind not in _KNOWN or (kind == "Transformer") != (number == 0):
            raise ArtifactError(
                f"{folder / MODULES} has the module {each.get('type')!r}, and known are {', '.join(_KNOWN)}, the first "
                "of them first. Its vectors could not be made without it; remove the file to import the network alone."
            )
        # A name with folders in it could lead anywhere.
        if Path(path).name != path:
            raise ArtifactError(f"{folder / MODULES} has a module at {path!r}, which is not a folder beside it.")
        if kind in ("Pooling", "Dense"):
            _json(folder / path / "config.json")
        if kind == "Dense":
            if not (weights := folder / path / "model.safetensors").is_file():
                raise ArtifactError(
                    f"{folder / path} has no model.safetensors: the weights of this module are read from nothing else. "
                    "Load the folder with sentence-transformers and save it again."
                )
            tensor_shapes(weights)
    for name in _BESIDE:
        if (file := folder / name).is_file():
            _json(file)
    return SentenceModules(folder, network, listed)


def copy_modules(modules: SentenceModules, hf: Path) -> None:
    """Write the modules into the published folder `hf`, whose root has the network."""
    listed = [dict(each) for each in modules.listed]
    listed[0]["path"] = ""
    write_json(hf / MODULES, listed)
    for each in listed[1:]:
        folder = make_folder(hf / str(each["path"]))
        for name in ("config.json", "model.safetensors"):
            if (file := modules.folder / str(each["path"]) / name).is_file():
                write_atomic(folder / name, file.read_bytes())
    for name in _BESIDE:
        found = (place / name for place in (modules.folder, modules.network) if (place / name).is_file())
        if (beside := next(found, None)) is not None:
            write_atomic(hf / name, beside.read_bytes())


def _kind(module: Mapping[str, Any]) -> str:
    return str(module.get("type", "")).rpartition(".")[2]


def _json(path: Path) -> Any:
    try:
        return parse_json(read_bytes(path, MAX_JSON))
    except (OSError, ValueError) as error:
        raise ArtifactError(f"cannot read {path}: {error}. Restore it from a copy.") from error
