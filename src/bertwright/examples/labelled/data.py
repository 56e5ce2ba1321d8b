"""Labelled examples as arrays: in memory, and in the examples artifact, where they are mapped.

    labelled/train.tokens      ids, first text and second text of each example, one example after another
    labelled/train.first       uint32 [N] tokens of the first text
    labelled/train.second      uint32 [N] tokens of the second text
    labelled/train.labels      float32 [N] the number of the class, or the number
    labelled/heldout.*         the same of what is held out
    labelled/facts.json        what was read, the classes, and whether examples are pairs

Texts are kept whole and cut when they are drawn, so that one artifact serves every length.
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
    """[N] tokens of each first text."""
    second: NDArray[np.uint32]
    """[N] tokens of each second text."""
    labels: NDArray[np.float32]
    """[N] number of the class, or the number."""

    def __len__(self) -> int:
        return len(self.labels)

    def write(self, folder: Path, split: Split) -> None:
        """Write the arrays of a split."""
        for name, array in vars(self).items():
            write_atomic(folder / f"{split}.{name}", array.tobytes())

    def take(self, rows: Ids) -> Labelled:
        """The examples of these numbers [M], in that order."""
        lengths = self.first.astype(np.int64) + self.second
        begins, counts = (np.cumsum(lengths) - lengths)[rows], lengths[rows]
        where = np.repeat(begins - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        return Labelled(self.tokens[where], self.first[rows], self.second[rows], self.labels[rows])


@dataclass(frozen=True)
class LabelledSet:
    """The examples of a split as they are drawn."""

    arrays: Labelled
    begins: Ids
    """[N] where each begins in the tokens."""
    pairs: bool
    """Whether they are pairs, also where a second text is empty."""
    classes: int
    """1: labels are numbers."""
    vocabulary: Vocabulary

    @classmethod
    def open(cls, examples: Artifact, split: Split, vocab: Artifact | None = None) -> LabelledSet:
        """A split of an examples artifact, refused unless it was made with the vocabulary `vocab`."""
        if f"{FOLDER}/facts.json" not in examples.names():
            raise ArtifactError(
                f"{examples.path} holds no labelled texts, which train.objective=classification learns from. Run the "
                "stage examples again."
            )
        vocabulary = Vocabulary.open(examples, vocab)
        facts = read_typed(examples.file(f"{FOLDER}/facts.json"), _FACTS)
        kinds = {"tokens": token_dtype(vocabulary.size), "first": "<u4", "second": "<u4", "labels": _LABELS}
        arrays = {name: map_file(examples.file(f"{FOLDER}/{split}.{name}"), kind) for name, kind in kinds.items()}
        labelled = Labelled(**arrays)
        lengths = labelled.first.astype(np.int64) + labelled.second
        # In a file that was cut the tokens of one text would be those of another.
        if lengths.sum() != len(labelled.tokens) or len({len(labelled.first), len(labelled.second), len(labelled)}) > 1:
            raise ArtifactError(
                f"the arrays {examples.path / FOLDER}/{split}.* do not fit together. Run examples again."
            )
        return cls(labelled, np.cumsum(lengths) - lengths, facts["pairs"], len(facts["labels"]), vocabulary)

    def lengths(self, rows: Ids, longest: int) -> Ids:
        """[N] tokens of the examples `rows` [N], special ones included, when cut to `longest`."""
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
        # [CLS] and [SEP] point beside their text, and are overwritten; of the last text that is outside of the store.
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
        """[N] tokens of both texts when the longer one is cut at its end until both fit, as `tokenizers` does
        (`longest_first`): where both are longer than half the room, each has half, the longer one the odd token."""
        first, second = (counts[rows].astype(np.int64) for counts in (self.arrays.first, self.arrays.second))
        room = longest - 2 - self.pairs
        shorter, longer = np.minimum(first, second), np.maximum(first, second)
        half = np.minimum(shorter, room // 2)
        rest = np.minimum(longer, room - half)
        swapped = first > second
        return np.where(swapped, rest, half), np.where(swapped, half, rest)
