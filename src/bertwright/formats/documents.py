"""Tokenised documents, which are yet to become examples, and what a format of them is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bertwright.examples.instances import Ints, ends
from bertwright.formats.format import Facts, Kind


@dataclass(frozen=True)
class TokenDocuments:
    """D tokenised documents of S sentences and T tokens; sentences and documents may be empty."""

    ids: NDArray[Any]
    """[T] one sentence after another."""
    lengths: Ints
    """[S] tokens of each sentence."""
    counts: Ints
    """[D] sentences of each document."""

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def sizes(self) -> Ints:
        """[D] tokens of each document."""
        return np.diff(ends(self.lengths)[ends(self.counts)])


class DocumentFile(Protocol):
    """A file of documents that is read by stretches of them, because it may hold a whole Wikipedia."""

    @property
    def counts(self) -> Ints:
        """[D] sentences of each document."""

    def pieces(self, tokens: int) -> list[tuple[int, int]]:
        """Stretches [first, stop) of documents that hold about so many tokens each, all documents in order."""

    def read(self, first: int, stop: int) -> TokenDocuments:
        """The documents `first` to `stop`; damage is a `ShardError`."""


@dataclass(frozen=True)
class DocumentFormat:
    """One format of tokenised documents; damaged and hostile files raise `ShardError`, as those of a `Format` do."""

    kind: Kind
    open: Callable[[Path], DocumentFile]
    facts: Callable[[Path], Facts | None] | None = None
    """What a file says of itself; None where the format of examples of the same kind tells the two apart."""
    write: Callable[[Path, Iterable[TokenDocuments], int], int] | None = None
    """Write documents of a vocabulary of that size and return their number; None where they are only read."""
    suffix: str = ""
    """What the names of the files that are written end with."""
    beside: Callable[[Path], tuple[Path, ...]] = lambda _: ()
    """The files that belong to one and are not recognised by themselves."""
