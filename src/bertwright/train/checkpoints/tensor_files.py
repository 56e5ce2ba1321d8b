"""The tensors of a checkpoint, in one file or in one file per rank.

Either `NAME.safetensors`, or `NAME-00001-of-00004.safetensors` and so on with `NAME.safetensors.index.json`, which maps
each tensor to its file as transformers does (`weight_map`). Every tensor is stored complete in one file, so readers
need not know how many ranks wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from typing_extensions import TypedDict

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.files import atomic_file, read_typed, sha256_of, write_json
from bertwright.model.saved import read_tensors


@dataclass(frozen=True)
class Snapshot:
    """The tensors of a checkpoint, of any shape, by name."""

    weights: Mapping[str, Tensor]
    moments: Mapping[str, Tensor]
    average: Mapping[str, Tensor] | None = None
    """The state of the weight average, if one is kept."""


class Index(TypedDict):
    """The index of which file has which tensor."""

    metadata: dict[str, int]
    """`total_size`: bytes of all tensors."""
    weight_map: dict[str, str]
    """File name by tensor name."""


_INDEX = TypeAdapter(Index)


def write_tensors(folder: Path, name: str, tensors: Mapping[str, Tensor], rank: int = 0, world: int = 1) -> None:
    """Write the share of one of `world` ranks of the tensors called `name`, and sync it to disk."""
    # Synced on the machine that wrote it: another one may seal.
    with atomic_file(folder / _file(name, rank, world)) as temporary:
        save_file(dict(tensors), temporary)


def write_index(folder: Path, name: str, world: int) -> None:
    """Write the index once all ranks have written their files; raise `FileNotFoundError` (an `OSError`) if one is
    missing here."""
    files: dict[str, str] = {}
    size = 0
    for path in (folder / _file(name, rank, world) for rank in range(world)):
        if not path.is_file():
            raise FileNotFoundError(f"{path.name} of another rank is missing; all ranks must share this folder")
        with safe_open(path, framework="pt") as held:
            files |= dict.fromkeys(held.keys(), path.name)
        size += _tensor_bytes(path)
    write_json(folder / f"{name}.safetensors.index.json", {"metadata": {"total_size": size}, "weight_map": files})


def read_all(checkpoint: Artifact, name: str) -> dict[str, Tensor]:
    """Return the tensors called `name` from verified files; raise `ArtifactError` if the index does not match them.

    The tensors are backed by the files (see `read_tensors`), so a rank reads only what it uses.
    """
    if is_unsharded(checkpoint, name):
        return read_tensors(checkpoint.file(f"{name}.safetensors"))
    path = checkpoint.file(f"{name}.safetensors.index.json")
    index = read_typed(path, _INDEX)["weight_map"]
    files = {file: read_tensors(checkpoint.file(file)) for file in sorted(set(index.values()))}
    if wrong := [tensor for tensor, file in index.items() if tensor not in files[file]]:
        raise ArtifactError(f"{path} says that {index[wrong[0]]} has {wrong[0]}, which is not in it. Restore it.")
    return {tensor: files[file][tensor] for tensor, file in index.items()}


def is_unsharded(checkpoint: Artifact, name: str) -> bool:
    """Whether one file has all the tensors called `name`."""
    return f"{name}.safetensors" in checkpoint.manifest["files"]


def hash_of(checkpoint: Artifact, name: str) -> str:
    """Return the SHA-256 of the file of the tensors called `name`, or a hash over those of all their files."""
    files = checkpoint.manifest["files"]
    if is_unsharded(checkpoint, name):
        return str(files[f"{name}.safetensors"]["sha256"])
    return sha256_of({file: files[file]["sha256"] for file in checkpoint.names(f"{name}-")})


def _tensor_bytes(path: Path) -> int:
    """Return the bytes after the header, whose length is stored in the first 8 bytes."""
    with path.open("rb") as handle:
        header = int.from_bytes(handle.read(8), "little")
    return path.stat().st_size - 8 - header


def _file(name: str, rank: int, world: int) -> str:
    return f"{name}.safetensors" if world == 1 else f"{name}-{rank + 1:05}-of-{world:05}.safetensors"
