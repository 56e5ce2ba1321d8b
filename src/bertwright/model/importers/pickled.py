"""Weights in files of `torch.save`, which are pickles: of transformers before safetensors, and of other trainers.

Nothing in them is executed: `torch_file` reads what they describe.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from bertwright.core.errors import ArtifactError
from bertwright.model.importers.checkpoints import Checkpoint, checkpoint_of
from bertwright.model.importers.index import indexed_files
from bertwright.model.importers.leveldb_table import is_table_file
from bertwright.model.importers.torch_file import Place, check_lengths, read_torch_file
from bertwright.model.importers.weights import Stored, Weights
from bertwright.model.importers.zip_archive import LOCAL

if TYPE_CHECKING:
    from torch import Tensor

WEIGHTS = "pytorch_model.bin"
INDEX = f"{WEIGHTS}.index.json"
_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt")
_OTHERS = ("training_args", "optimizer", "scheduler", "scaler", "rng_state")
"""Beginnings of the names of other files that transformers writes with `torch.save` beside the weights."""
_MAGIC = (0x1950A86A20F9469CFC6C).to_bytes(10, "little")


class PickledWeights(Weights):
    """See `Weights`. The folder of a model, or one file."""

    title = "file of torch.save"

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def find(cls, path: Path) -> Self | None:
        """See `Weights`. In a folder, weights have the name that transformers gives them, or are the only such file."""
        if path.is_file():
            # TensorFlow's first checkpoints had one of these suffixes, too.
            named = path.suffix in _SUFFIXES and not is_table_file(path)
            return cls(path) if named or _is_pickle(path) else None
        if (path / WEIGHTS).is_file():
            return cls(path / WEIGHTS)
        if (path / INDEX).is_file() or (path.is_dir() and _others(path)):
            return cls(path)
        return None

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """See `Weights`."""
        if self._path.is_file():
            return (self._path,)
        if (index := self._path / INDEX).is_file():
            return tuple(self._path / name for name in sorted(set(indexed_files(index).values())))
        if len(found := _others(self._path)) > 1:
            names = ", ".join(file.name for file in found[:5])
            raise ArtifactError(f"{self._path} has several files of weights: {names}. Give the path of one of them.")
        return tuple(found)

    @cached_property
    def stored(self) -> Mapping[str, Stored]:
        """See `Weights`."""
        found = {
            name: Stored(file, place.shape, place.dtype, self._checkpoints[file].tensors[name][0])
            for file, places in self._places.items()
            for name, place in places.items()
        }
        index = self._path / INDEX
        listed = indexed_files(index) if self._path.is_dir() and index.is_file() else {}
        files = {stored.name: stored.file.name for stored in found.values()}
        if wrong := sorted(name for name, file in listed.items() if files.get(name) != file):
            raise ArtifactError(
                f"{index} says that {wrong[0]} is in {listed[wrong[0]]}, but it is not. Restore the folder from a "
                "copy, or save the network again."
            )
        return found

    @property
    def left_out(self) -> Mapping[str, int]:
        """See `Weights`."""
        counts: dict[str, int] = {}
        for checkpoint in self._checkpoints.values():
            for kind, number in checkpoint.left_out.items():
                counts[kind] = counts.get(kind, 0) + number
        return counts

    @property
    def config(self) -> Mapping[str, Any] | None:
        """See `Weights`: Composer keeps it in its checkpoints."""
        return next((each.config for each in self._checkpoints.values() if each.config is not None), None)

    def read(self) -> dict[str, Tensor]:
        """See `Weights`. Tensors are read from the mapped file on access, where their place in it allows that."""
        found: dict[str, Tensor] = {}
        for file, places in self._places.items():
            with file.open("rb") as handle:
                # Private pages: torch warns of a buffer that cannot be written, and no write reaches the file.
                mapped = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_COPY)
            found |= {name: _tensor(mapped, place) for name, place in places.items()}
        return found

    @cached_property
    def _checkpoints(self) -> dict[Path, Checkpoint]:
        return {file: checkpoint_of(read_torch_file(file)) for file in self.files}

    @cached_property
    def _places(self) -> dict[Path, dict[str, Place]]:
        found: dict[Path, dict[str, Place]] = {}
        for file, checkpoint in self._checkpoints.items():
            found[file] = {name: checkpoint.file.place(value, name) for name, (_, value) in checkpoint.tensors.items()}
            check_lengths(file, found[file])
        return found


def _tensor(mapped: mmap.mmap, place: Place) -> Tensor:
    import torch

    dtype: torch.dtype = getattr(torch, place.dtype)
    if not place.length:
        return torch.empty(place.shape, dtype=dtype)
    read = torch.uint8 if dtype is torch.bool else dtype
    flat = torch.frombuffer(mapped, dtype=read, count=place.length // read.itemsize, offset=place.start)
    if dtype is torch.bool:
        flat = flat != 0  # no other byte may be in a tensor of this dtype
    elif place.start % read.itemsize:
        flat = flat.clone()  # some instructions of a CPU read numbers only from multiples of their size
    return flat.as_strided(place.shape, place.stride)


def _others(folder: Path) -> list[Path]:
    """Files of `torch.save` in a folder that may be its weights."""
    return sorted(
        file
        for file in folder.iterdir()
        if file.suffix in _SUFFIXES and not file.name.startswith(_OTHERS) and file.is_file() and _is_pickle(file)
    )


def _is_pickle(path: Path) -> bool:
    """Whether a file begins like one of `torch.save`."""
    with path.open("rb") as handle:
        head = handle.read(32)
    return head.startswith(LOCAL) or _MAGIC in head
