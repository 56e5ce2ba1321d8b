"""Tokenised documents, from which examples are built later, and the interface of a document format."""

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
    """[T] token ids of all sentences, concatenated."""
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
    """A file of documents, read in ranges of documents because it may hold an entire Wikipedia."""

    @property
    def counts(self) -> Ints:
        """[D] sentences of each document."""

    def pieces(self, tokens: int) -> list[tuple[int, int]]:
        """Split all documents, in order, into ranges [first, stop) of about `tokens` tokens each."""

    def read(self, first: int, stop: int) -> TokenDocuments:
        """Return the documents `first` to `stop` (exclusive). Damage raises `ShardError`."""


@dataclass(frozen=True)
class DocumentFormat:
    """One format of tokenised documents. As with `Format`, damaged and hostile files raise `ShardError`."""

    kind: Kind
    open: Callable[[Path], DocumentFile]
    facts: Callable[[Path], Facts | None] | None = None
    """Reads a file's facts; None if the example format of the same kind distinguishes examples from documents."""
    write: Callable[[Path, Iterable[TokenDocuments], int], int] | None = None
    """Writes documents, given the vocabulary size, and returns their number; None for read-only formats."""
    suffix: str = ""
    """Suffix of the names of written files."""
    beside: Callable[[Path], tuple[Path, ...]] = lambda _: ()
    """Returns the companion files of a file, which are not recognised by themselves."""
