"""What an optimizer asks where it holds parts of tensors that lie on several ranks."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class Shards(Protocol):
    """Every method is called by all ranks together, for the same tensor."""

    def add(self, numbers: Tensor) -> Tensor:
        """The sum over ranks of numbers of any shape, such as the squared norms of parts."""

    def whole_of(self, part: Tensor, parameter: Tensor) -> Tensor:
        """The whole tensor, of any shape, on every rank, from this rank's part, which is as `parameter` is."""

    def part_of(self, whole: Tensor, parameter: Tensor) -> Tensor:
        """This rank's part of a whole tensor of any shape, as `parameter` is."""


class Whole:
    """The `Shards` of a rank that holds whole tensors: nothing to add, nothing to cut."""

    def add(self, numbers: Tensor) -> Tensor:
        """As `Shards.add`: of any shape."""
        return numbers

    def whole_of(self, part: Tensor, parameter: Tensor) -> Tensor:
        """As `Shards.whole_of`: tensors of any shape."""
        return part

    def part_of(self, whole: Tensor, parameter: Tensor) -> Tensor:
        """As `Shards.part_of`: tensors of any shape."""
        return whole
