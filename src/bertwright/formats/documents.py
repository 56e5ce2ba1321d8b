"""Tokenised documents, which are yet to become examples, and what the files of them have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bertwright.examples.instances import Ints, ends


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
