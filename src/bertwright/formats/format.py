"""What the formats have in common: the facts of a file, and reading and writing it as blocks of examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from bertwright.examples.instances import Instances

Kind = Literal["hdf5", "hdf5-varlen", "tfrecord", "lddl", "datasets", "megatron"]


@dataclass(frozen=True)
class Shape:
    """The form of a set of examples; None where the files do not say."""

    length: int | None
    """Room of an example (tokens)."""
    predictions: int | None
    """Room for predictions of an example."""
    static: bool
    """Whether masks are part of the files; if not, they are drawn while training."""


@dataclass(frozen=True)
class Facts:
    """What a file says of itself without being read."""

    kind: Kind
    shape: Shape
    examples: int | None
    """Examples in it (documents, for token documents); None when only reading tells."""
    documents: bool | None = False
    """Whether it holds tokenised documents, of which examples are yet to be made; None when it has too few to tell."""


class Format(Protocol):
    """A module that reads and writes one format of examples.

    Files are trusted with nothing: damaged and hostile ones raise `ShardError`, and sizes they declare are checked
    before memory is taken. Reading and writing stream blocks of examples; a file is written whole or not at all.
    """

    def facts(self, file: Path) -> Facts | None:
        """What `file` says of itself; None when it is of another format."""

    def read(self, file: Path, vocabulary: Sequence[str] | None = None) -> Iterator[Instances]:
        """Its examples in order, checked against the vocabulary's size where one is given."""

    def write(
        self, file: Path, blocks: Iterator[Instances], shape: Shape, vocabulary: Sequence[str] | None = None
    ) -> int:
        """Write the examples and return their number. `DataError` names an example that the format cannot hold."""
