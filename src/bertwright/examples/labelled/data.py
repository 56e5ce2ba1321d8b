"""Labelled examples as arrays: in memory, and memory-mapped from the examples artifact.

    labelled/train.tokens      ids: first text and second text of each example, concatenated over examples
    labelled/train.first       uint32 [N] tokens of the first text
    labelled/train.second      uint32 [N] tokens of the second text
    labelled/train.labels      float32 [N] class number, or regression target
    labelled/heldout.*         the same for the held-out examples
    labelled/facts.json        what was read, the classes, and whether examples are pairs

Texts are stored in full and truncated when a batch is built, so that one artifact serves every length.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_typed, write_atomic
from bertwright.core.shapes import Flag, Text
from bertwright.examples.batch import MicroBatch
from bertwright.examples.store import Split, map_file, token_dtype
from bertwright.examples.vocabulary import Vocabulary

FOLDER = "labelled"
_LABELS = "<f4"
Ids = NDArray[np.int64]


class _Facts(TypedDict):
    pairs: Flag
    labels: list[Text]


_FACTS = TypeAdapter(_Facts)


@dataclass(frozen=True)
class Labelled:
    """N labelled examples of single texts or of pairs."""

    tokens: NDArray[Any]
    """[T] ids of all texts, without [CLS] and [SEP]."""
    first: NDArray[np.uint32]
    """[N] number of tokens of each first text."""
    second: NDArray[np.uint32]
    """[N] number of tokens of each second text."""
    labels: NDArray[np.float32]
    """[N] class number, or regression target."""

    def __len__(self) -> int:
        return len(self.labels)

    def write(self, folder: Path, split: Split) -> None:
        """Write the arrays as files of a split in `folder`."""
        for name, array in vars(self).items():
            write_atomic(folder / f"{split}.{name}", array.tobytes())

    def take(self, rows: Ids) -> Labelled:
        """The examples with the indices `rows` [M], in that order."""
        lengths = self.first.astype(np.int64) + self.second
        begins, counts = (np.cumsum(lengths) - lengths)[rows], lengths[rows]
        where = np.repeat(begins - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        return Labelled(self.tokens[where], self.first[rows], self.second[rows], self.labels[rows])


@dataclass(frozen=True)
class LabelledSet:
    """The examples of a split, from which batches are built."""

    arrays: Labelled
    begins: Ids
    """[N] index of each example's first token."""
    pairs: bool
    """Whether they are pairs, even if some second texts are empty."""
    classes: int
    """Number of classes; 1: regression."""
    vocabulary: Vocabulary

    @classmethod
    def open(cls, examples: Artifact, split: Split, vocab: Artifact | None = None) -> LabelledSet:
        """Open a split of an examples artifact.

        Raises `ArtifactError` if it holds no labelled texts, is damaged, or has another vocabulary than `vocab`.
        """
        if f"{FOLDER}/facts.json" not in examples.names():
            raise ArtifactError(
                f"{examples.path} contains no labelled texts, but train.objective=classification needs them. Run the "
                "stage examples again."
            )
        vocabulary = Vocabulary.open(examples, vocab)
        facts = read_typed(examples.file(f"{FOLDER}/facts.json"), _FACTS)
        kinds = {"tokens": token_dtype(vocabulary.size), "first": "<u4", "second": "<u4", "labels": _LABELS}
        arrays = {name: map_file(examples.file(f"{FOLDER}/{split}.{name}"), kind) for name, kind in kinds.items()}
        labelled = Labelled(**arrays)
        lengths = labelled.first.astype(np.int64) + labelled.second
        # With a truncated file, texts would silently get the tokens of other texts.
        if lengths.sum() != len(labelled.tokens) or len({len(labelled.first), len(labelled.second), len(labelled)}) > 1:
            raise ArtifactError(
                f"the arrays {examples.path / FOLDER}/{split}.* do not match each other. Run examples again."
            )
        return cls(labelled, np.cumsum(lengths) - lengths, facts["pairs"], len(facts["labels"]), vocabulary)

    def lengths(self, rows: Ids, longest: int) -> Ids:
        """[N] tokens of the examples `rows` [N] after truncation to `longest`, special tokens included."""
        first, second = self._cut(rows, longest)
        lengths: Ids = first + second + 2 + self.pairs
        return lengths

    def batch(self, rows: Ids, longest: int) -> MicroBatch:
        """The examples `rows` [B] as one packed batch without predictions: [CLS] A [SEP], or [CLS] A [SEP] B [SEP]."""
        first, second = self._cut(rows, longest)
        lengths = first + second + 2 + self.pairs
        ends = np.cumsum(lengths)
        begins = ends - lengths
        place = np.arange(ends[-1] if len(ends) else 0) - np.repeat(begins, lengths)
        a, whole, start = (
            np.repeat(v, lengths) for v in (first, self.arrays.first[rows].astype(np.int64), self.begins[rows])
        )
        second_text = place > a + 1
        # Indices at [CLS] and [SEP] point next to their text, possibly outside the array: clipped, then overwritten.
        inside = np.where(second_text, start + whole + place - a - 2, start + place - 1)
        tokens = (
            np.take(self.arrays.tokens, inside, mode="clip").astype(np.int64) if len(self.arrays.tokens) else 0 * place
        )
        tokens[begins] = self.vocabulary.cls
        tokens[begins + first + 1] = tokens[ends - 1] = self.vocabulary.sep
        labels = self.arrays.labels[rows]
        bounds, none = np.concatenate([[0], ends]).astype(np.int32), np.zeros(0, np.int64)
        return MicroBatch(
            token_ids=tokens,
            position_ids=place,
            segment_ids=second_text.astype(np.int64),
            cu_seqlens=bounds,
            cu_rows=bounds,
            max_row=int(lengths.max(initial=0)),
            prediction_positions=none,
            labels=none,
            weights=np.zeros(0, np.float32),
            sequence_labels=labels if self.classes == 1 else labels.astype(np.int64),
            sequence_weights=np.ones(len(rows), np.float32),
        )

    def _cut(self, rows: Ids, longest: int) -> tuple[Ids, Ids]:
        """[N] tokens kept of each text when the longer one is truncated at its end until both fit, as `tokenizers` does
        (`longest_first`): if both exceed half the room, each gets half, and the longer one gets the odd token."""
        first, second = (counts[rows].astype(np.int64) for counts in (self.arrays.first, self.arrays.second))
        room = longest - 2 - self.pairs
        shorter, longer = np.minimum(first, second), np.maximum(first, second)
        half = np.minimum(shorter, room // 2)
        rest = np.minimum(longer, room - half)
        swapped = first > second
        return np.where(swapped, rest, half), np.where(swapped, half, rest)
