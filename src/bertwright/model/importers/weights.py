"""The weights of a network in the files of a program: what each reader of such files offers.

Names and shapes are read without torch, so that checking a recipe stays fast.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from torch import Tensor

NONE: Mapping[str, int] = MappingProxyType({})
"""Nothing was left out."""


@dataclass(frozen=True)
class Stored:
    """A tensor in a weight file."""

    file: Path
    shape: tuple[int, ...]
    dtype: str
    """As torch names it, without the module: "float32"."""
    name: str
    """Its name in the file."""


_NUMBERS = ("float16", "bfloat16", "float32", "float64")


def quantised(stored: Stored) -> str:
    """Say that a tensor of a network holds codes instead of its weights, and what to do; "" if it holds numbers."""
    if stored.dtype in _NUMBERS:
        return ""
    return (
        f"{stored.name} is {stored.dtype}: the network is quantised, and its codes are no weights to go on from; give "
        f"the one that it was made from, in {', '.join(_NUMBERS[:-1])} or {_NUMBERS[-1]}"
    )


class Weights(ABC):
    """The weights of a network in the files of a program. Opening them reads names and shapes only.

    Names are those of transformers, wherever the program has others. Tensors that no network here has keep the names
    that they have in the file, so that whoever reads them can say which they are.
    """

    title: ClassVar[str]
    """What such files are called: "safetensors file"."""

    @classmethod
    @abstractmethod
    def find(cls, path: Path) -> Self | None:
        """Return the weights in a folder, or in one file; None if there are none of this kind.

        Judges by the names of files and at most their first bytes.
        """

    @property
    @abstractmethod
    def files(self) -> tuple[Path, ...]:
        """All files that hold tensors: their content identifies the weights. Raises `ArtifactError` if one is
        absent."""

    @property
    @abstractmethod
    def stored(self) -> Mapping[str, Stored]:
        """The tensors by name. Raises `ArtifactError` if a file is absent, damaged or not what it claims to be."""

    @property
    def left_out(self) -> Mapping[str, int]:
        """What the files hold beside the weights, such as the moments of an optimizer, and how many tensors of it."""
        return NONE

    @property
    def config(self) -> Mapping[str, Any] | None:
        """The configuration of the network with the keys of transformers, if the files themselves have it."""
        return None

    @abstractmethod
    def read(self) -> dict[str, Tensor]:
        """Return the tensors of `stored`, under the same names, on the CPU, in the dtype and shape stated there.

        Takes the memory of one copy at most. Raises `ArtifactError` as `stored` does.
        """
