"""Weights of a BERT in a checkpoint of TensorFlow: Google's, NVIDIA's and MLCommons', and the Model Garden's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from bertwright.core.errors import ArtifactError
from bertwright.core.files import naming, read_text
from bertwright.model.importers.leveldb_table import is_table_file
from bertwright.model.importers.tensorflow_bundle import Bundle
from bertwright.model.importers.tensorflow_names import Named, is_transposed, name_all, stored_shape
from bertwright.model.importers.weights import Stored, Weights

if TYPE_CHECKING:
    from torch import Tensor

_NAMED = "checkpoint"
"""The file in which TensorFlow names the newest of the checkpoints in a folder."""
_NEWEST = re.compile(r'^model_checkpoint_path:\s*"((?:[^"\\]|\\.)*)"', re.MULTILINE)
_DATA = re.compile(r"\.data-\d{5}-of-\d{5}$")


class TensorFlowWeights(Weights):
    """See `Weights`. A checkpoint is given by what the names of its files begin with, one of its files, or its folder.

    Elements are read with the same bits; checksums are verified.
    """

    title = "TensorFlow checkpoint"

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def find(cls, path: Path) -> Self | None:
        """See `Weights`."""
        found = bool(_prefixes(path) or _old_files(path)) if path.is_dir() else _is_one(path)
        return cls(path) if found else None

    @cached_property
    def prefix(self) -> Path:
        """What the names of its files begin with. Raises `ArtifactError` if a folder has several, and names none."""
        if not self._path.is_dir():
            return _prefix_of(self._path)
        found = _prefixes(self._path)
        if not found:
            raise ArtifactError(_old(_old_files(self._path)[0]))
        newest = next((prefix for prefix in found if prefix.name == _newest(self._path)), None)
        if newest is None and len(found) > 1:
            names = ", ".join(prefix.name for prefix in found)
            raise ArtifactError(
                f"{self._path} has {len(found)} TensorFlow checkpoints ({names}), and no file {_NAMED!r} that names "
                f"one of them. Give one, such as {found[-1]}."
            )
        return newest or found[0]

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """See `Weights`."""
        bundle = self._bundle
        for file in bundle.data_files.values():
            if not file.is_file():
                raise ArtifactError(
                    f"{file}, which {bundle.index.name} lists, does not exist. Download or copy it, too."
                )
        return (bundle.index, *bundle.data_files.values())

    @cached_property
    def stored(self) -> Mapping[str, Stored]:
        """See `Weights`."""
        bundle, named, _ = self._bundle, self._named, self.files
        with self._reading():
            bundle.check_data()
            return {
                theirs: Stored(
                    bundle.data_files.get(bundle.entries[name].shard, bundle.index),
                    stored_shape(theirs, name, bundle.entries[name].shape),
                    bundle.entries[name].dtype,
                    name,
                )
                for theirs, name in named.tensors.items()
            }

    @property
    def left_out(self) -> Mapping[str, int]:
        """See `Weights`."""
        return self._named.left_out

    def read(self) -> dict[str, Tensor]:
        """See `Weights`."""
        import torch

        tensors, bundle = {}, self._bundle
        for theirs, stored in self.stored.items():
            with self._reading(), naming(stored.file):
                bits = bundle.read(stored.name)
                if theirs != stored.name and is_transposed(stored.name):
                    bits = bits.reshape(stored.shape[::-1]).T
                # A copy, because what was read cannot be written to; in torch's order of dimensions.
                own = np.array(bits.reshape(stored.shape), order="C").view(f"i{bits.itemsize}")
                tensors[theirs] = torch.from_numpy(own).view(getattr(torch, stored.dtype))
        return tensors

    @cached_property
    def _bundle(self) -> Bundle:
        if not _index_of(self.prefix).is_file():
            raise ArtifactError(_old(self.prefix))
        with self._reading():
            return Bundle(self.prefix)

    @cached_property
    def _named(self) -> Named:
        bundle = self._bundle
        with self._reading():
            return name_all({name: entry.shape for name, entry in bundle.entries.items()})

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (ValueError, OverflowError, MemoryError) as error:
            reason = "it does not fit into memory" if isinstance(error, MemoryError) else error
            raise ArtifactError(
                f"{_index_of(self.prefix)} is not a TensorFlow checkpoint that can be read: {reason}. Restore it and "
                "its data files from a copy, or give another network."
            ) from error


def _prefixes(folder: Path) -> list[Path]:
    """Return the beginnings of the names of the checkpoints in a folder, by name."""
    data = {_DATA.sub("", file.name) for file in folder.glob("*.data-*-of-*")}
    found = {
        file.stem for file in folder.glob("*.index") if file.is_file() and (file.stem in data or is_table_file(file))
    }
    return [folder / name for name in sorted(found)]


def _index_of(prefix: Path) -> Path:
    return prefix.with_name(f"{prefix.name}.index")


def _prefix_of(path: Path) -> Path:
    """Return the beginning of the names of a checkpoint's files, given one of them or that beginning."""
    name = _DATA.sub("", path.name.removesuffix(".index").removesuffix(".meta"))
    return path.with_name(name) if _index_of(path.with_name(name)).is_file() else path


def _is_one(path: Path) -> bool:
    return bool(path.name) and (_index_of(_prefix_of(path)).is_file() or (path.is_file() and is_table_file(path)))


def _old_files(folder: Path) -> list[Path]:
    """Return the checkpoints of format V1 in a folder: single files, most of which have the step in their names."""
    files = (path for path in folder.glob("*.ckpt*") if path.is_file() and path.suffix != ".index")
    return sorted(filter(is_table_file, files))


def _newest(folder: Path) -> str:
    """Return the name of the checkpoint that TensorFlow names as the newest in a folder; "" if it names none."""
    file = folder / _NAMED
    if not file.is_file():
        return ""
    try:
        found = _NEWEST.search(read_text(file, 2**20))
    except ValueError:
        return ""
    # An absolute path is that of the machine on which it was written.
    return found[1].rpartition("/")[2] if found else ""


def _old(path: Path) -> str:
    return (
        f"{path} is a TensorFlow checkpoint of format V1, which TensorFlow wrote before version 1.0 and is not read. "
        "Load it once with a Saver of TensorFlow 1 and save it again with write_version=tf.train.SaverDef.V2."
    )
