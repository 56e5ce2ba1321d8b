"""The pair walk and truncation of create_pretraining_data.py (Google, NVIDIA, MLCommons, Intel), restated plainly.

A document is a list of sentence lengths in tokens. Where the numbers come from is left open: `Numbers` is asked by
name, so the same walk runs on Python's generator (as the original does) or on the counter hash (as bertwright does).
"""

import random
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from bertwright.core import rng

Document = list[int]


class Numbers(Protocol):
    def share(self, what: str, chunk: int) -> float: ...  # uniform in [0, 1)

    def below(self, n: int, what: str, chunk: int) -> int: ...  # uniform in 0 .. n-1


class Pair(NamedTuple):
    """Segments as half-open sentence ranges; B lies in document `b_document`."""

    a: tuple[int, int]
    b_document: int
    b: tuple[int, int]
    is_random: bool


def walk(
    documents: list[Document],
    number: int,
    budget: int,
    numbers: Numbers,
    short_seq_prob: float = 0.1,
    random_next_prob: float = 0.5,
    random_label: str = "nvidia",
) -> list[Pair]:
    document = documents[number]
    target = budget
    if numbers.share("short", 0) < short_seq_prob:
        target = 2 + numbers.below(budget - 1, "target", 0)

    pairs = []
    chunk: list[int] = []  # sentence numbers
    count = 0
    i = 0
    while i < len(document):
        chunk.append(i)
        if i == len(document) - 1 or sum(document[s] for s in chunk) >= target:
            count += 1
            a_sentences = 1
            if len(chunk) >= 2:
                a_sentences = 1 + numbers.below(len(chunk) - 1, "split", count)
            a = (chunk[0], chunk[0] + a_sentences)

            if len(chunk) == 1 or numbers.share("coin", count) < random_next_prob:
                for attempt in range(10):
                    other = numbers.below(len(documents), f"try {attempt}", count)
                    if other != number:
                        break
                wanted = target - sum(document[a[0] : a[1]])
                start = end = numbers.below(len(documents[other]), "start", count)
                while end < len(documents[other]):
                    end += 1
                    if sum(documents[other][start:end]) >= wanted:
                        break
                is_random = True if random_label == "google" else other != number
                pairs.append(Pair(a, other, (start, end), is_random))
                i -= len(chunk) - a_sentences  # the unused sentences are put back
            else:
                pairs.append(Pair(a, number, (a[1], chunk[-1] + 1), False))
            chunk = []
        i += 1
    return pairs


def truncate(a: list[int], b: list[int], budget: int, front: Callable[[str, int], bool]) -> tuple[list[int], list[int]]:
    """Drop tokens until both fit; `front(side, j)` tosses the coin for the j-th token dropped from a side."""
    a, b = list(a), list(b)
    dropped = {"a": 0, "b": 0}
    while len(a) + len(b) > budget:
        side, longer = ("a", a) if len(a) > len(b) else ("b", b)
        if front(side, dropped[side]):
            del longer[0]
        else:
            longer.pop()
        dropped[side] += 1
    return a, b


class Generator:
    """Numbers as the original draws them: one after another from one generator."""

    def __init__(self, seed: int) -> None:
        self._generator = random.Random(seed)

    def share(self, what: str, chunk: int) -> float:
        return self._generator.random()

    def below(self, n: int, what: str, chunk: int) -> int:
        return self._generator.randint(0, n - 1)


class Hashed:
    """Numbers as bertwright draws them: a hash of (key, chunk, purpose)."""

    PURPOSES = ("split", "coin", "start", *(f"try {attempt}" for attempt in range(10)))

    def __init__(self, key: int) -> None:
        self._key = np.uint64(key)

    def _counter(self, what: str, chunk: int) -> int:
        return ("short", "target").index(what) if chunk == 0 else 16 * chunk + self.PURPOSES.index(what)

    def share(self, what: str, chunk: int) -> float:
        return float(rng.uniform(self._key, self._counter(what, chunk))[0])

    def below(self, n: int, what: str, chunk: int) -> int:
        return int(rng.below(self._key, self._counter(what, chunk), n)[0])
