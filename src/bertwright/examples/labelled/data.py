"""Labelled examples as arrays: in memory, and memory-mapped from the examples artifact.

    labelled/train.tokens      ids: first text and second text of each example, concatenated over examples
    labelled/train.first       uint32 [N] tokens of the first text
    labelled/train.second      uint32 [N] tokens of the second text
    labelled/train.labels      float32 [N] class number, or regression target; [N, C] 1 for each label of a text, else
                               0, if a text may have several of the C labels
    labelled/heldout.*         the same for the held-out examples
    labelled/facts.json        what was read, the classes, and whether examples are pairs

Texts are stored in full and truncated when a batch is built, so that one artifact serves every length.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertwright.core.artifact import Artifact
from bertwright.examples.batch import MicroBatch
from bertwright.examples.columns import Columns, facts_of
from bertwright.examples.example_set import ExampleSet, Ids, Selection, StepCounts
from bertwright.examples.store import Split
from bertwright.examples.text_pairs import Parts, cut_longer, pack_texts
from bertwright.examples.vocabulary import Vocabulary


@dataclass(frozen=True)
class Labelled(Columns):
    """N labelled examples of single texts or of pairs; `tokens` are those of all texts, without [CLS] and [SEP]."""

    types: ClassVar[Mapping[str, str]] = MappingProxyType({"first": "<u4", "second": "<u4", "labels": "<f4"})

    first: NDArray[np.uint32]
    """[N] number of tokens of each first text."""
    second: NDArray[np.uint32]
    """[N] number of tokens of each second text."""
    labels: NDArray[np.float32]
    """[N] class number, or regression target; [N * C] 1 or 0 for each of C labels, if a text may have several."""

    @property
    def lengths(self) -> Ids:
        """[N] tokens of each example, of both texts."""
        lengths: Ids = self.first.astype(np.int64) + self.second
        return lengths

    @property
    def fit(self) -> bool:
        """As `Columns.fit`."""
        number = len(self.first)
        per_example, rest = divmod(len(self.labels), max(number, 1))
        return number == len(self.second) and not rest and bool(per_example) == bool(number)

    @property
    def label_rows(self) -> NDArray[np.float32]:
        """[N, 1] the label of each example, or [N, C] 1 or 0 for each label."""
        return self.labels.reshape(len(self), len(self.labels) // max(len(self), 1))

    def take(self, rows: Ids) -> Labelled:
        """The examples with the indices `rows` [M], in that order."""
        lengths = self.lengths
        begins, counts = (np.cumsum(lengths) - lengths)[rows], lengths[rows]
        where = np.repeat(begins - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        return Labelled(self.tokens[where], self.first[rows], self.second[rows], self.label_rows[rows].reshape(-1))


NO_LABELS = "no label"
"""What is said of a text to which none of the labels applies."""


def commonest_labels(train: Labelled, heldout: Labelled) -> tuple[NDArray[np.float32], float]:
    """The set of labels [C] that most training texts have, and the share of the held-out texts that have it."""
    sets, counts = np.unique(train.label_rows, axis=0, return_counts=True)
    commonest = sets[counts.argmax()]
    return commonest, float((heldout.label_rows == commonest).all(1).mean())


@dataclass(frozen=True)
class LabelledExamples(ExampleSet):
    """The examples of a split; see `ExampleSet`."""

    labelled: Labelled
    begins: Ids
    """[N] index of each example's first token."""
    length: int
    """Maximum length of an example, special tokens included (tokens)."""
    pairs: bool
    """Whether they are pairs, even if some second texts are empty."""
    classes: int
    """Number of classes; 1: regression."""
    vocabulary: Vocabulary

    @classmethod
    def open(cls, examples: Artifact, split: Split, length: int, vocab: Artifact | None = None) -> LabelledExamples:
        """Open a split of an examples artifact, to be truncated to `length`.

        Raises `ArtifactError` if it holds no labelled texts, is damaged, or has another vocabulary than `vocab`.
        """
        vocabulary, labelled, facts = (
            Vocabulary.open(examples, vocab),
            Labelled.open(examples, split),
            facts_of(examples),
        )
        begins = np.cumsum(labelled.lengths) - labelled.lengths
        return cls(labelled, begins, length, facts["pairs"], len(facts["labels"]), vocabulary)

    @property
    def sizes(self) -> list[int]:
        """As `ExampleSet.sizes`."""
        return [len(self.labelled)]

    @property
    def arrays(self) -> Iterable[NDArray[Any]]:
        """As `ExampleSet.arrays`: of any shape."""
        return self.labelled.arrays.values()

    def lengths(self, some: Selection) -> Ids:
        """As `ExampleSet.lengths`: [N] tokens of each example."""
        first, second = self._cut(some.rows)
        lengths: Ids = first + second + 2 + self.pairs
        return lengths

    def counts(self, some: Selection) -> StepCounts:
        """As `ExampleSet.counts`, from the lengths alone."""
        return StepCounts(predictions=0, sequences=len(some), tokens=int(self.lengths(some).sum()))

    def batch(self, some: Selection) -> MicroBatch:
        """As `ExampleSet.batch`, without predictions: [CLS] A [SEP], or [CLS] A [SEP] B [SEP]."""
        rows = some.rows
        first, second = self._cut(rows)
        begins = self.begins[rows]
        pairs = Parts(begins + self.labelled.first[rows].astype(np.int64), second) if self.pairs else None
        return pack_texts(self.labelled.tokens, Parts(begins, first), pairs, self.vocabulary, self._labels(rows))

    def _labels(self, rows: Ids) -> NDArray[Any]:
        """As `Batch.sequence_labels`."""
        if len(self.labelled.labels) > len(self.labelled):
            return self.labelled.label_rows[rows]
        labels = self.labelled.labels[rows]
        return labels if self.classes == 1 else labels.astype(np.int64)

    def _cut(self, rows: Ids) -> tuple[Ids, Ids]:
        """[N] tokens kept of each text; see `cut_longer`."""
        first, second = (counts[rows].astype(np.int64) for counts in (self.labelled.first, self.labelled.second))
        return cut_longer(first, second, self.length - 2 - self.pairs)
