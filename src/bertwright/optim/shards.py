"""The collective operations that an optimizer needs if its tensors are sharded over several ranks."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class Shards(Protocol):
    """Collective operations: all ranks call each method together, for the same tensor."""

    def add(self, numbers: Tensor) -> Tensor:
        """The sum over ranks of a tensor of any shape, such as the squared norms of parts."""

    def whole_of(self, part: Tensor, parameter: Tensor) -> Tensor:
        """The complete tensor, of any shape, on every rank, from this rank's part, which is sharded as `parameter`."""

    def part_of(self, whole: Tensor, parameter: Tensor) -> Tensor:
        """This rank's part of a complete tensor of any shape, sharded as `parameter`."""


class Whole:
    """The `Shards` of a rank that holds complete tensors: all operations return their input."""

    def add(self, numbers: Tensor) -> Tensor:
        """As `Shards.add`: of any shape."""
        return numbers

    def whole_of(self, part: Tensor, parameter: Tensor) -> Tensor:
        """As `Shards.whole_of`: tensors of any shape."""
        return part

    def part_of(self, whole: Tensor, parameter: Tensor) -> Tensor:
        """As `Shards.part_of`: tensors of any shape."""
        return whole
