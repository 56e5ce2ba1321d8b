"""Examples of a task as arrays, in memory or memory-mapped from the examples artifact.

    labelled/train.NAME      an array of the training examples
    labelled/heldout.NAME    the same for the held-out examples
    labelled/facts.json      what was read, and what determines it

Examples are stored in full and cut when a batch is built, so that one artifact serves every length. Training loads this
module, which therefore needs neither a tokenizer nor the stage.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from numpy.typing import NDArray
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_typed, write_atomic
from bertwright.core.shapes import Flag, Text
from bertwright.examples.example_set import ExampleSet, Ids
from bertwright.examples.store import Split, map_file, token_dtype
from bertwright.examples.vocabulary import Vocabulary

FOLDER = "labelled"


class _Facts(TypedDict):
    pairs: Flag
    """Whether an example is two texts."""
    labels: list[Text]


def facts_of(examples: Artifact) -> _Facts:
    """What the labelled examples of an artifact are; `ArtifactError` if it has none."""
    if f"{FOLDER}/facts.json" not in examples.names():
        raise ArtifactError(
            f"{examples.path} contains no labelled examples, but train.objective needs them. Run the stage examples "
            "again."
        )
    return read_typed(examples.file(f"{FOLDER}/facts.json"), TypeAdapter(_Facts))


@dataclass(frozen=True)
class Columns(ABC):
    """N examples as arrays; each field of a subclass is one, of the type in `types`."""

    types: ClassVar[Mapping[str, str]]
    """The numpy type of each array but `tokens`."""

    tokens: NDArray[Any]
    """[T] ids of all examples."""

    @property
    @abstractmethod
    def lengths(self) -> Ids:
        """[N] ids of each example."""

    @property
    @abstractmethod
    def fit(self) -> bool:
        """Whether the arrays are as long as they say of each other: a file may be truncated."""

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name, of any shape; nothing that is derived from them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def write(self, folder: Path, split: Split) -> None:
        """Write the arrays as files of a split in `folder`."""
        for name, array in self.arrays.items():
            write_atomic(folder / f"{split}.{name}", array.tobytes())

    @classmethod
    def open(cls, examples: Artifact, split: Split) -> Self:
        """The memory-mapped arrays of a split; raises `ArtifactError` if it has others, or if it is damaged."""
        facts_of(examples)
        kinds = {field.name: cls.types.get(field.name, "") for field in fields(cls)}
        if any(f"{FOLDER}/{split}.{name}" not in examples.names() for name in kinds):
            raise ArtifactError(
                f"{examples.path} contains no examples of the kind that train.objective needs. Run the stage examples "
                "again."
            )
        kinds["tokens"] = token_dtype(Vocabulary.open(examples).size)
        files = {name: examples.file(f"{FOLDER}/{split}.{name}") for name in kinds}
        columns = cls(**{name: map_file(files[name], kind) for name, kind in kinds.items()})
        # With a truncated file, examples would silently get the tokens of others.
        if not columns.fit or columns.lengths.sum() != len(columns.tokens):
            raise ArtifactError(
                f"the arrays {examples.path / FOLDER}/{split}.* do not match each other. Run examples again."
            )
        return columns


Stored = TypeVar("Stored", bound=Columns)


@dataclass(frozen=True)
class ColumnExamples(ExampleSet, Generic[Stored]):
    """The examples of a split that are stored as columns; a task defines a subclass. See `ExampleSet`."""

    column_type: ClassVar[type[Columns]]
    """The class of `columns`."""

    columns: Stored
    length: int
    """Maximum length of a sequence, special tokens included (tokens)."""
    vocabulary: Vocabulary

    @classmethod
    def open(cls, examples: Artifact, split: Split, length: int, vocab: Artifact | None = None) -> Self:
        """Open a split of an examples artifact. Raises `ArtifactError` if it was made for another task, is damaged, or
        has another vocabulary than `vocab`."""
        vocabulary = Vocabulary.open(examples, vocab)
        columns: Any = cls.column_type.open(examples, split)
        return cls(columns, length, vocabulary)

    @property
    def arrays(self) -> Iterable[NDArray[Any]]:
        """As `ExampleSet.arrays`: of all columns, of any shape."""
        return self.columns.arrays.values()
