"""Which rank has what: whole tensors dealt out, or a part of each. Knows no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeVar

Tensor = TypeVar("Tensor")


def owned(sizes: Mapping[str, int], ranks: int) -> Sequence[Sequence[str]]:
    """The names of each rank's tensors, from the numbers of their elements: the largest first, to who has least."""
    names: list[list[str]] = [[] for _ in range(ranks)]
    held = [0] * ranks
    for name in sorted(sizes, key=lambda name: sizes[name], reverse=True):
        least = held.index(min(held))
        names[least].append(name)
        held[least] += sizes[name]
    return names


class Share:
    """What a rank writes of a whole state: each tensor is one rank's, with its moments."""

    def __init__(self, sizes: Mapping[str, int], ranks: int, rank: int) -> None:
        """Of tensors by name, of so many elements, for one rank of so many."""
        self._of_rank, self._rank = {n: r for r, names in enumerate(owned(sizes, ranks)) for n in names}, rank

    def has(self, name: str) -> bool:
        """Whether this rank writes the tensor of that name; what is no parameter is the first one's."""
        return self._of_rank.get(name, 0) == self._rank

    def of(
        self, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """This rank's of the weights and of the moments (`MOMENT.NAME`)."""
        own = {name: tensor for name, tensor in weights.items() if self.has(name)}
        return own, {key: tensor for key, tensor in moments.items() if self.has(key.partition(".")[2])}


def rows(count: int, ranks: int, rank: int) -> slice:
    """The rows that a rank has of a tensor of so many where each has as many, and the last ones fewer or none."""
    each = -(-count // ranks)
    return slice(min(rank * each, count), min((rank + 1) * each, count))


def part(shape: Sequence[int], ranks: int, rank: int) -> int:
    """How many numbers a rank has of a tensor in such `rows`."""
    return len(range(shape[0])[rows(shape[0], ranks, rank)]) * prod(shape[1:])
