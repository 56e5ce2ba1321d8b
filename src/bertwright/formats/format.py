"""What a format of examples is: how a file of it is detected, read and written, and what the format needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from bertwright.examples.instances import Instances

Kind = Literal["hdf5", "hdf5-varlen", "tfrecord", "lddl", "datasets", "megatron"]

Split = Literal["training", "test"]

OTHER_SPLITS = ("test", "validation", "eval")
"""Names of folders whose files are not for training."""

SPLITS = ("train", "training", *OTHER_SPLITS)
"""Names of folders that say what their files are for."""


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


@dataclass(frozen=True)
class FileNumber:
    """Which of the files of a set one is, for its name."""

    name: str
    """Of the data set."""
    split: Split
    number: int
    files: int
    compress: bool = False

    @property
    def of(self) -> str:
        """Such as `00003-of-00010`."""
        return f"{self.number:05}-of-{self.files:05}"


@dataclass(frozen=True)
class Provenance:
    """How the examples of a phase were made, for formats whose folders are named after it."""

    name: str
    """Of the data set."""
    plan_set: str
    """Such as `128`, or `512-0.9-1.0` for a share of the documents."""
    lower_case: bool
    strip_accents: bool
    length: int
    predictions: int
    mask_rate: float
    seed: int
    passes: int


def plain_folder(made: Provenance) -> str:
    """The folder of a set of examples where no reader asks for a name."""
    return f"seq_{made.plan_set}"


class Read(Protocol):
    """Reads a file."""

    def __call__(self, file: Path, vocabulary: Sequence[str] | None = None) -> Iterator[Instances]:
        """Its examples in order, in blocks, checked against the vocabulary's size where one is given."""


class Write(Protocol):
    """Writes a file."""

    def __call__(
        self, file: Path, blocks: Iterator[Instances], shape: Shape, vocabulary: Sequence[str] | None = None
    ) -> int:
        """Write the examples and return their number. `DataError` names an example that the format cannot hold."""


@dataclass(frozen=True)
class Format:
    """One format of finished examples.

    Files are trusted with nothing: damaged and hostile ones raise `ShardError`, and sizes they declare are checked
    before memory is taken. Reading and writing stream blocks of examples; a file is written whole or not at all.
    """

    kind: Kind
    facts: Callable[[Path], Facts | None]
    """What a file says of itself; None when it is of another format."""
    read: Read
    write: Write
    file_name: Callable[[FileNumber], str]
    """The name of a file, as the readers of the format ask for it."""
    padded: bool = False
    """Whether all examples have one length and one room for predictions, which the files say."""
    static_only: bool = False
    """Whether it cannot hold examples without masks."""
    pairs_only: bool = False
    """Whether it holds nothing but [CLS] A [SEP] B [SEP] with a next-sentence label."""
    reads_vocabulary: bool = False
    """Whether it holds word pieces as text, so that ids need the vocabulary."""
    compressible: bool = False
    """Whether its files may be compressed as a whole."""
    unequal_files: bool = False
    """Whether its loader refuses files unless some hold n examples and the others n + 1."""
    split_folders: bool = True
    """Whether each split has a folder, because readers take all that lies in or below one; else names tell them apart.
    """
    set_folder: Callable[[Provenance], str] = plain_folder
    """The folder of the examples of a phase."""
    data_files: Callable[[Iterable[Path]], Iterator[Path]] = iter
    """Those of some files that may be data, where its library leaves others beside them."""
    describe: Callable[[Path], None] | None = None
    """Writes what its library wants beside the files, in and below a folder."""
