"""Pairs of texts as arrays, and the batches that are built from them.

    labelled/train.tokens      ids: the anchor of each pair, its positive and its negatives, without [CLS] and [SEP]
    labelled/train.counts      uint16 [N] texts of each pair
    labelled/train.pieces      uint32 [S] tokens of each text
    labelled/train.texts       uint32 [S] number of each text: equal texts have the same
    labelled/train.groups      uint32 [N] number of the group of each pair

An example is as many sequences as it has texts: [CLS] text [SEP].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bertwright.examples.batch import MicroBatch
from bertwright.examples.columns import ColumnExamples, Columns
from bertwright.examples.example_set import Ids, Selection, StepCounts
from bertwright.examples.text_pairs import Parts, pack_texts


@dataclass(frozen=True)
class PairColumns(Columns):
    """N pairs with S texts in all; see the module."""

    types: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"counts": "<u2", "pieces": "<u4", "texts": "<u4", "groups": "<u4"}
    )

    counts: NDArray[np.uint16]
    """[N] texts of each pair."""
    pieces: NDArray[np.uint32]
    """[S] tokens of each text."""
    texts: NDArray[np.uint32]
    """[S] number of each text."""
    groups: NDArray[np.uint32]
    """[N] number of the group of each pair."""

    @property
    def lengths(self) -> Ids:
        """As `Columns.lengths`, [N]."""
        return self.of_pairs(self.pieces.astype(np.int64))

    @cached_property
    def first_texts(self) -> Ids:
        """[N + 1] index of each pair's anchor, and the number of texts."""
        return np.append(0, np.cumsum(self.counts, dtype=np.int64))

    def of_pairs(self, values: Ids) -> Ids:
        """[N] the sum of `values` [S] over the texts of each pair."""
        sums: Ids = np.diff(np.append(0, np.cumsum(values))[self.first_texts])
        return sums

    @property
    def fit(self) -> bool:
        """As `Columns.fit`."""
        same = len(self.counts) == len(self.groups) and len(self.pieces) == len(self.texts)
        return same and int(self.first_texts[-1]) == len(self.pieces) and bool((self.counts >= 2).all())

    def cut(self, length: int) -> Ids:
        """[S] tokens kept of each text in a sequence of at most `length` tokens."""
        return np.minimum(self.pieces.astype(np.int64), length - 2)


@dataclass(frozen=True)
class PairExamples(ColumnExamples[PairColumns]):
    """The examples of a split; see `ExampleSet`."""

    column_type = PairColumns

    @cached_property
    def kept(self) -> Ids:
        """[S] as `PairColumns.cut`."""
        return self.columns.cut(self.length)

    @cached_property
    def begins(self) -> Ids:
        """[S] index of the first token of each text."""
        pieces = self.columns.pieces.astype(np.int64)
        begins: Ids = np.cumsum(pieces) - pieces
        return begins

    @property
    def sizes(self) -> list[int]:
        """As `ExampleSet.sizes`."""
        return [len(self.columns)]

    @property
    def most_sequences(self) -> int:
        """As `ExampleSet.most_sequences`: the most texts."""
        return int(self.columns.counts.max(initial=2))

    def sequences(self, some: Selection) -> Ids:
        """As `ExampleSet.sequences`, [N]: the texts of each pair."""
        return self.columns.counts[some.rows].astype(np.int64)

    def lengths(self, some: Selection) -> Ids:
        """As `ExampleSet.lengths`, [N]."""
        lengths: Ids = self.all_lengths[some.rows]
        return lengths

    @cached_property
    def all_lengths(self) -> Ids:
        """[N] tokens of all sequences of every pair."""
        return self.columns.of_pairs(self.kept + 2)

    def counts(self, some: Selection) -> StepCounts:
        """As `ExampleSet.counts`: the loss of a pair is one, however many negatives it has."""
        return StepCounts(predictions=0, sequences=len(some), tokens=int(self.lengths(some).sum()))

    def batch(self, some: Selection) -> MicroBatch:
        """As `ExampleSet.batch`; `sequence_labels` [B, 3] are the number of each text in its pair, counted from 1, that
        of the pair's group, and that of the text itself."""
        columns, texts = self.columns, self.sequences(some)
        own = np.repeat(some.rows, texts)
        number = np.arange(len(own)) - np.repeat(np.cumsum(texts) - texts, texts)
        chosen = columns.first_texts[own] + number
        labels = np.stack([number + 1, columns.groups[own], columns.texts[chosen]], 1).astype(np.int64)
        parts = Parts(self.begins[chosen], self.kept[chosen])
        return pack_texts(columns.tokens, parts, None, self.vocabulary, labels)
