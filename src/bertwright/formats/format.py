"""The interfaces of formats: how to detect, read and write files of examples, or of tokenised documents, from which
examples are built later, and what a format requires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from bertwright.examples.instances import Instances, Ints, ends
from bertwright.formats.columns import MAX_LENGTH
from bertwright.formats.errors import ShardError

Kind = Literal["hdf5", "hdf5-varlen", "tfrecord", "lddl", "datasets", "megatron"]

Split = Literal["training", "test"]

OTHER_SPLITS = ("test", "validation", "valid", "val", "dev", "eval")
"""Names of splits that are not used for training."""

TRAINING_SPLITS = ("train", "training")
"""Folder names that denote the training split."""

SPLITS = (*TRAINING_SPLITS, *OTHER_SPLITS)
"""Folder names that denote a split."""


SIZES = ("bertwright.length", "bertwright.predictions")
"""Names of the sizes of a `Shape` in the metadata of files that are not padded."""


@dataclass(frozen=True)
class Shape:
    """The shape of a set of examples; None for values that the files do not state."""

    length: int | None
    """Maximum length of an example, in tokens."""
    predictions: int | None
    """Maximum number of predictions of an example."""
    static: bool
    """Whether the files contain the masks; if not, masks are drawn during training."""

    @property
    def metadata(self) -> dict[str, str]:
        """The known sizes by name, as formats that are not padded store them in the metadata of a file."""
        sizes = zip(SIZES, (self.length, self.predictions), strict=True)
        return {name: str(size) for name, size in sizes if size is not None}

    @classmethod
    def from_metadata(cls, file: Path, metadata: Mapping[bytes, bytes], static: bool) -> Self:
        """Return the shape that the `metadata` of `file` states; files of other programs state none.

        Raises `ShardError` if a size is not a number of tokens that an example can have.
        """
        sizes = dict[str, int]()
        for name in SIZES:
            if (stated := metadata.get(name.encode())) is None:
                continue
            # `int` alone would accept spaces and underscores, and work for long on millions of digits.
            size = int(stated) if stated.isdigit() and len(stated) <= len(str(MAX_LENGTH)) else 0
            if not 0 < size <= MAX_LENGTH:
                shown = stated[:20].decode(errors="replace")
                raise ShardError(file, f"its metadata {name} is {shown!r}, not a number from 1 to {MAX_LENGTH:,}")
            sizes[name] = size
        length, predictions = map(sizes.get, SIZES)
        return cls(length, predictions, static)


@dataclass(frozen=True)
class FileInfo:
    """What a file states about itself, known without reading all of it."""

    kind: Kind
    shape: Shape
    examples: int | None
    """Number of examples (for token documents: of documents); None when only reading the file shows it."""
    documents: bool | None = False
    """Whether it holds tokenised documents, not finished examples; None when it has too few to tell."""


@dataclass(frozen=True)
class FileNumber:
    """Position of a file in its set, for its name."""

    name: str
    """Name of the dataset."""
    split: Split
    number: int
    files: int
    compress: bool = False

    @property
    def of(self) -> str:
        """Number and total, such as `00003-of-00010`."""
        return f"{self.number:05}-of-{self.files:05}"


@dataclass(frozen=True)
class Provenance:
    """How the examples of a phase were made, for formats that name their folders after it."""

    name: str
    """Name of the dataset."""
    plan_set: str
    """Name of the plan set, such as `128`, or `512-0.9-1.0` for a share of the documents."""
    lower_case: bool
    strip_accents: bool
    length: int
    predictions: int
    mask_rate: float
    seed: int
    passes: int


def plain_folder(made: Provenance) -> str:
    """The folder of a set of examples for formats whose readers require no particular name."""
    return f"seq_{made.plan_set}"


class Read(Protocol):
    """Function that reads a file."""

    def __call__(self, file: Path, vocabulary: Sequence[str] | None = None) -> Iterator[Instances]:
        """Yield the file's examples in order, in blocks, checked against the vocabulary's size if one is given."""


class Write(Protocol):
    """Function that writes a file."""

    def __call__(
        self, file: Path, blocks: Iterator[Instances], shape: Shape, vocabulary: Sequence[str] | None = None
    ) -> int:
        """Write the examples and return their number. Raises `DataError` for an example that the format cannot hold."""


@dataclass(frozen=True)
class Format:
    """One format of finished examples.

    Files are not trusted: damaged and hostile ones raise `ShardError`, and declared sizes are checked before memory is
    allocated. Reading and writing stream blocks of examples; a file is written completely or not at all.
    """

    kind: Kind
    facts: Callable[[Path], FileInfo | None]
    """Returns what a file states about itself; None when it is of another format."""
    read: Read
    write: Write
    file_name: Callable[[FileNumber], str]
    """Returns the name of a file, as the readers of the format expect it."""
    padded: bool = False
    """Whether all examples are padded to one length and one number of predictions, which the files state."""
    static_only: bool = False
    """Whether it cannot hold examples without masks."""
    pairs_only: bool = False
    """Whether it can hold only [CLS] A [SEP] B [SEP] with a next-sentence label."""
    reads_vocabulary: bool = False
    """Whether it holds word pieces as text, which need the vocabulary to become ids."""
    compressible: bool = False
    """Whether entire files can be compressed."""
    unequal_files: bool = False
    """Whether its loader requires that some files hold n examples and the others n + 1."""
    split_folders: bool = True
    """Whether each split has its own folder, because readers take every file below one; if not, file names differ."""
    set_folder: Callable[[Provenance], str] = plain_folder
    """Returns the folder of the examples of a phase."""
    data_files: Callable[[Iterable[Path]], Iterator[Path]] = iter
    """Filters out files that are not data, for formats whose library leaves other files next to the data."""
    describe: Callable[[Path], None] | None = None
    """Writes the metadata files that its library requires, in and below a folder."""


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
    facts: Callable[[Path], FileInfo | None] | None = None
    """Reads a file's facts; None if the example format of the same kind distinguishes examples from documents."""
    write: Callable[[Path, Iterable[TokenDocuments], int], int] | None = None
    """Writes documents, given the vocabulary size, and returns their number; None for read-only formats."""
    suffix: str = ""
    """Suffix of the names of written files."""
    beside: Callable[[Path], tuple[Path, ...]] = lambda _: ()
    """Returns the companion files of a file, which are not recognised by themselves."""
