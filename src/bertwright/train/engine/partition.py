"""Which rank has which tensors: complete tensors dealt out, or rows of each tensor. Does not import torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeVar

Tensor = TypeVar("Tensor")


def deal_out(sizes: Mapping[str, int], ranks: int) -> Sequence[Sequence[str]]:
    """Return the tensor names of each rank, from element counts: the largest first, each to the rank with the least."""
    names: list[list[str]] = [[] for _ in range(ranks)]
    held = [0] * ranks
    for name in sorted(sizes, key=lambda name: sizes[name], reverse=True):
        least = held.index(min(held))
        names[least].append(name)
        held[least] += sizes[name]
    return names


class Share:
    """A rank's share of a complete state: each tensor, with its moments, belongs to one rank."""

    def __init__(self, sizes: Mapping[str, int], ranks: int, rank: int) -> None:
        """`sizes`: element counts by tensor name; for rank `rank` of `ranks`."""
        self._of_rank, self._rank = {n: r for r, names in enumerate(deal_out(sizes, ranks)) for n in names}, rank

    def has(self, name: str) -> bool:
        """Whether this rank writes the tensor of that name; tensors that are no parameters belong to rank 0."""
        return self._of_rank.get(name, 0) == self._rank

    def of(
        self, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return this rank's share of the weights and of the moments (`MOMENT.NAME`)."""
        own = {name: tensor for name, tensor in weights.items() if self.has(name)}
        return own, {key: tensor for key, tensor in moments.items() if self.has(key.partition(".")[2])}


def rows(count: int, ranks: int, rank: int) -> slice:
    """Return a rank's rows of a tensor with `count` rows: equal numbers, but the last ranks may have fewer or none."""
    each = -(-count // ranks)
    return slice(min(rank * each, count), min((rank + 1) * each, count))


def part(shape: Sequence[int], ranks: int, rank: int) -> int:
    """Return the number of elements that a rank has of a tensor split by `rows`."""
    return len(range(shape[0])[rows(shape[0], ranks, rank)]) * prod(shape[1:])
