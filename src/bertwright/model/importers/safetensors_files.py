"""Weights in safetensors: one file, or several with an index. What transformers writes, and this project."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from bertwright.core.errors import ArtifactError
from bertwright.core.tensors import tensor_headers
from bertwright.model.importers.index import indexed_files
from bertwright.model.importers.weights import Stored, Weights

if TYPE_CHECKING:
    from torch import Tensor

WEIGHTS = "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"
_DTYPES = {"BOOL": "bool", "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64"}
_DTYPES |= {"I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64"}
_DTYPES |= {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}


class SafetensorsWeights(Weights):
    """See `Weights`. The folder of a model, or one file."""

    title = "safetensors file"

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def find(cls, path: Path) -> Self | None:
        """See `Weights`."""
        if path.is_file():
            return cls(path) if path.suffix == ".safetensors" else None
        return cls(path) if any((path / name).is_file() for name in (WEIGHTS, INDEX)) else None

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """See `Weights`."""
        return (self._path,) if self._path.is_file() else tuple(weight_files(self._path))

    @cached_property
    def stored(self) -> Mapping[str, Stored]:
        """See `Weights`."""
        listed = {} if self._path.is_file() or (self._path / WEIGHTS).is_file() else indexed_files(self._path / INDEX)
        found = {
            name: Stored(file, shape, _DTYPES[dtype], name)
            for file in self.files
            for name, (dtype, shape) in tensor_headers(file).items()
        }
        if wrong := sorted(name for name, file in listed.items() if name not in found or found[name].file.name != file):
            raise ArtifactError(
                f"{self._path / INDEX} says that {wrong[0]} is in {listed[wrong[0]]}, but it is not. Restore the "
                "folder from a copy, or save the network again."
            )
        return found

    def read(self) -> dict[str, Tensor]:
        """See `Weights`. Tensors are read from the mapped file on access."""
        from bertwright.model.saved import read_tensors

        files = dict.fromkeys(stored.file for stored in self.stored.values())
        return {name: tensor for file in files for name, tensor in read_tensors(file).items()}


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder in the format of transformers. Raises `ArtifactError` if its index is
    damaged."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    index = folder / INDEX
    return [folder / name for name in sorted(set(indexed_files(index).values()))] if index.is_file() else []
