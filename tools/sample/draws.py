"""A reproducible stream of random choices: the sample has the same bytes on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from bertwright.core import rng

T = TypeVar("T")
_BLOCK = 1024


class Draws:
    """Uniform integers from the counter hash of `bertwright.core.rng`, under a named key."""

    def __init__(self, *name: int | str) -> None:
        self._key = rng.key(*name)
        self._counter = 0
        self._block: list[int] = []

    def below(self, n: int) -> int:
        """Return the next integer in [0, n)."""
        position = self._counter % _BLOCK
        if position == 0:
            counters = range(self._counter, self._counter + _BLOCK)
            self._block = [int(value) >> 32 for value in rng.bits(self._key, list(counters))]
        self._counter += 1
        return self._block[position] * n >> 32

    def one(self, choices: Sequence[T]) -> T:
        """Return one of the choices, each equally likely."""
        return choices[self.below(len(choices))]

    def some(self, choices: Sequence[T], n: int) -> list[T]:
        """Return `n` different choices in random order (all of them if there are fewer)."""
        rest = list(choices)
        return [rest.pop(self.below(len(rest))) for _ in range(min(n, len(rest)))]
