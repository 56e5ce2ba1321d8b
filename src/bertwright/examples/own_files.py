"""The files of a task that learns from examples of its own: how they are found and read. Does not need numpy."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from bertwright.core.errors import DataError, RecipeError
from bertwright.examples.problems import Problems

if TYPE_CHECKING:
    from bertwright.examples.labelled.sizes import TextSizes


class OwnFiles(ABC):
    """How the files of a task are read: each task with files of its own has a subclass, made of its settings."""

    unit: ClassVar[str]
    """What an example is, a plural such as "sentences"."""
    suffixes: ClassVar[tuple[str, ...]]
    """The suffixes of the files."""
    several_sequences: ClassVar[bool] = False
    """Whether an example is several sequences, such as a question with each of its choices."""

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """The names of what is predicted, such as classes, in the order of their numbers."""

    @property
    def heldout(self) -> tuple[str, ...]:
        """The words that begin the names of held-out files, or else occur in them."""
        return ("dev", "devel", "validation", "valid", "eval", "val")

    @property
    def published(self) -> int:
        """The number of examples to train on, if it is known before the files are read; else 0."""
        return 0

    @property
    def pairs(self) -> bool:
        """Whether an example is two texts, even if some second texts are empty."""
        return False

    @property
    def specials(self) -> int:
        """Special tokens of an example: [CLS] and each [SEP]."""
        return 2 + self.pairs

    @property
    @abstractmethod
    def settings(self) -> Mapping[str, Any]:
        """What determines the examples, besides the files."""

    @abstractmethod
    def read(self, file: Path, problems: Problems) -> Iterator[Any]:
        """Yield the examples of a file in order; what cannot be read is counted in `problems`.

        Raises `DataError`, naming the file and where possible the line, if the file cannot be read at all.
        """

    @abstractmethod
    def texts(self, example: Any) -> Sequence[str]:
        """The texts of an example, by which repetitions are found."""

    def label(self, example: Any) -> str:
        """What is right of an example, as text, by which contradictions are found."""
        return ""

    def held_together(self, example: Any) -> Sequence[str]:
        """The texts by which a share is held out: examples with the same ones are in the same split."""
        return self.texts(example)

    def sizes(self, file: Path) -> TextSizes:
        """The number and sizes of the examples in a file, from all of them."""
        import numpy as np  # slow to import, and not needed by pre-training

        from bertwright.examples.labelled.sizes import TextSizes

        found = (self.texts(example) for example in self.read(file, Problems()))
        read = np.fromiter((sum(len(text.encode()) for text in texts) for texts in found), np.int64)
        return TextSizes(len(read), read, int(read.max(initial=0)))

    def missing(self, path: Path) -> str:
        """Why there is nothing at `path`, and what to do; empty: it is no name that means more than a path."""
        return ""


TRAINING = ("train", "training")
"""The words that names of training files begin with, or else contain."""


class Files(NamedTuple):
    """The files of a data set."""

    train: tuple[Path, ...]
    heldout: tuple[Path, ...]
    """If empty, a share of the training examples is held out."""
    unread: tuple[Path, ...]
    """Files that are not read, such as test sets, whose labels are not published."""


def find_files(path: Path, own: OwnFiles, key: str) -> Files:
    """Find the data files at `path`, a folder or a single file, by their names, not their content.

    Raises `RecipeError`, naming the recipe's `key`, if there is no file to train on.
    """
    if path.is_file() and path.suffix in own.suffixes:
        return Files((path,), (), ())
    if not path.exists():
        raise RecipeError(
            f"{key}: {own.missing(path) or f'{path} does not exist. Give a folder or file of labelled {own.unit}.'}"
        )
    if not path.is_dir():
        known = ", ".join(own.suffixes)
        raise RecipeError(f"{key}: {path} is in none of the formats {known}. Give a file of {own.unit} in one of them.")
    # Hidden files are what editors and interrupted copies leave.
    inside = [file for file in path.iterdir() if not file.name.startswith(".")]
    files = sorted(file for file in inside if file.suffix in own.suffixes)
    train = named_files(files, TRAINING)
    if not train:
        found = ", ".join(file.name for file in files) or "no such file"
        raise RecipeError(
            f"{key}: {path} has no file to train on: give a file of {own.unit} with labels, or a folder with files "
            "that have the word train or training in their names, such as train.csv, train-0.parquet or "
            f"rte_train.jsonl, in the format {', '.join(own.suffixes)}; found: {found}."
        )
    heldout = named_files([file for file in files if file not in train], own.heldout)
    return Files(train, heldout, tuple(file for file in files if file not in {*train, *heldout}))


def named_files(files: Sequence[Path], names: Sequence[str]) -> tuple[Path, ...]:
    """The files whose names begin with one of `names`, or else those that contain one as a separate word, which digits
    may join (`wnut17train`)."""
    for begins in ("^", r"(?:^|[-_.0-9])"):
        pattern = re.compile(rf"{begins}(?:{'|'.join(names)})(?:[-_.0-9]|$)", re.IGNORECASE)
        if found := tuple(file for file in files if pattern.search(file.stem)):
            return found
    return ()


def count_first(own: OwnFiles, file: Path, most: int) -> int:
    """How many examples a file has, counting no more than `most`; raises as `OwnFiles.read`."""
    return sum(1 for _ in islice(own.read(file, Problems()), most))


def refuse_empty(key: str, path: Path, own: OwnFiles, files: Files, counts: tuple[int, int]) -> None:
    """Raise `DataError` if the files have no example to train on, or those that are held out have none; `counts` are
    those of training and held-out examples."""
    train, heldout = counts
    where, one = f"{key}: {path}", own.unit.removesuffix("s")
    if not train:
        raise DataError(f"{where} has no labelled {one} to train on. Give files with labels.")
    if not heldout and files.heldout:
        names = ", ".join(file.name for file in files.heldout)
        raise DataError(f"{where}: there is no labelled {one} in {names}, which is held out. Give one with labels.")
