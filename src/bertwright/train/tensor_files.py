"""The tensors of a checkpoint, in one file or in one of each rank.

`NAME.safetensors`, or `NAME-00001-of-00004.safetensors` and so on, with `NAME.safetensors.index.json`, which says the
file of each tensor as transformers' folders do (`weight_map`). Tensors are whole in either, so whoever reads them need
not know how many ranks wrote them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from typing_extensions import TypedDict

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_typed, sha256_of, write_json
from bertwright.model.saved import read_tensors


class Index(TypedDict):
    """Which file has which tensor."""

    metadata: dict[str, int]
    """`total_size`: bytes of all tensors."""
    weight_map: dict[str, str]
    """The name of the file by that of the tensor."""


_INDEX = TypeAdapter(Index)


def write_tensors(folder: Path, name: str, tensors: Mapping[str, Tensor], rank: int = 0, world: int = 1) -> None:
    """Write what one rank of so many has of the tensors called `name`, to the disk itself."""
    path = folder / _file(name, rank, world)
    # safetensors gives its files mode 600, so a group that shares the run folder could not read the checkpoints.
    path.touch()
    mode = path.stat().st_mode
    save_file(dict(tensors), path)
    with contextlib.suppress(OSError):  # a file system without modes
        path.chmod(mode)
    with path.open("rb") as handle:
        os.fsync(handle.fileno())  # by the machine that wrote it: the one that seals may be another


def write_index(folder: Path, name: str, world: int) -> None:
    """Write where each tensor is, once all ranks have written theirs; `OSError` where a rank's file is not here."""
    files: dict[str, str] = {}
    size = 0
    for path in (folder / _file(name, rank, world) for rank in range(world)):
        if not path.is_file():
            raise FileNotFoundError(f"{path.name} of another rank is not here; all ranks must share this folder")
        with safe_open(path, framework="pt") as held:
            files |= dict.fromkeys(held.keys(), path.name)
        size += _tensor_bytes(path)
    write_json(folder / f"{name}.safetensors.index.json", {"metadata": {"total_size": size}, "weight_map": files})


def read_all(checkpoint: Artifact, name: str) -> dict[str, Tensor]:
    """The tensors called `name`, from files whose hashes are right; `ArtifactError` where the index says other ones.

    They lie in the files (see `read_tensors`), so a rank reads of them what it takes.
    """
    if is_whole(checkpoint, name):
        return read_tensors(checkpoint.file(f"{name}.safetensors"))
    path = checkpoint.file(f"{name}.safetensors.index.json")
    index = read_typed(path, _INDEX)["weight_map"]
    files = {file: read_tensors(checkpoint.file(file)) for file in sorted(set(index.values()))}
    if wrong := [tensor for tensor, file in index.items() if tensor not in files[file]]:
        raise ArtifactError(f"{path} says that {index[wrong[0]]} has {wrong[0]}, which it has not. Restore it.")
    return {tensor: files[file][tensor] for tensor, file in index.items()}


def is_whole(checkpoint: Artifact, name: str) -> bool:
    """Whether one file has all the tensors called `name`."""
    return f"{name}.safetensors" in checkpoint.manifest["files"]


def hash_of(checkpoint: Artifact, name: str) -> str:
    """The SHA-256 of the file of the tensors called `name`, or of those of all their files."""
    files = checkpoint.manifest["files"]
    if is_whole(checkpoint, name):
        return str(files[f"{name}.safetensors"]["sha256"])
    return sha256_of({file: files[file]["sha256"] for file in checkpoint.names(f"{name}-")})


def _tensor_bytes(path: Path) -> int:
    """What follows the header, before which its length stands in 8 bytes."""
    with path.open("rb") as handle:
        header = int.from_bytes(handle.read(8), "little")
    return path.stat().st_size - 8 - header


def _file(name: str, rank: int, world: int) -> str:
    return f"{name}.safetensors" if world == 1 else f"{name}-{rank + 1:05}-of-{world:05}.safetensors"
