"""Which rank has what: whole tensors dealt out, or a part of each. Knows no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod


def owned(sizes: Mapping[str, int], ranks: int) -> Sequence[Sequence[str]]:
    """The names of each rank's tensors, from the numbers of their elements: the largest first, to who has least."""
    names: list[list[str]] = [[] for _ in range(ranks)]
    held = [0] * ranks
    for name in sorted(sizes, key=lambda name: sizes[name], reverse=True):
        least = held.index(min(held))
        names[least].append(name)
        held[least] += sizes[name]
    return names


def part(shape: Sequence[int], ranks: int, rank: int) -> int:
    """The numbers of a tensor that a rank has where each has as many rows, and the last ones fewer or none."""
    rows = -(-shape[0] // ranks)
    return max(0, min(rows, shape[0] - rank * rows)) * prod(shape[1:])
