"""Questions with choices as arrays, and the batches that are built from them.

    labelled/train.tokens      ids: the text of each example and each of its choices, without [CLS] and [SEP]
    labelled/train.contexts    uint32 [N] tokens of each text
    labelled/train.choices     uint16 [N] choices of each example
    labelled/train.endings     uint32 [C] tokens of each choice, with the question that begins it
    labelled/train.labels      uint16 [N] index of the right choice

An example is as many sequences as it has choices: [CLS] text [SEP] choice [SEP].
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
from bertwright.examples.text_pairs import Parts, cut_longer, pack_texts


@dataclass(frozen=True)
class ChoiceColumns(Columns):
    """N questions with C choices in all; see the module."""

    types: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"contexts": "<u4", "choices": "<u2", "endings": "<u4", "labels": "<u2"}
    )

    contexts: NDArray[np.uint32]
    """[N] tokens of each text."""
    choices: NDArray[np.uint16]
    """[N] choices of each example."""
    endings: NDArray[np.uint32]
    """[C] tokens of each choice."""
    labels: NDArray[np.uint16]
    """[N] index of the right choice."""

    @property
    def lengths(self) -> Ids:
        """As `Columns.lengths`, [N]."""
        lengths: Ids = self.contexts + self.of_examples(self.endings.astype(np.int64))
        return lengths

    @cached_property
    def first_choices(self) -> Ids:
        """[N + 1] index of each example's first choice, and the number of choices."""
        return np.append(0, np.cumsum(self.choices, dtype=np.int64))

    def of_examples(self, values: Ids) -> Ids:
        """[N] the sum of `values` [C] over the choices of each example."""
        sums: Ids = np.diff(np.append(0, np.cumsum(values))[self.first_choices])
        return sums

    @property
    def fit(self) -> bool:
        """As `Columns.fit`."""
        same = len(self.contexts) == len(self.choices) == len(self.labels)
        return same and int(self.first_choices[-1]) == len(self.endings) and bool((self.labels < self.choices).all())

    def cut(self, length: int) -> tuple[Ids, Ids]:
        """[C] tokens of the text and of the choice in each sequence of at most `length` tokens."""
        contexts = np.repeat(self.contexts.astype(np.int64), self.choices)
        return cut_longer(contexts, self.endings.astype(np.int64), length - 3)


@dataclass(frozen=True)
class ChoiceExamples(ColumnExamples[ChoiceColumns]):
    """The examples of a split; see `ExampleSet`."""

    column_type = ChoiceColumns

    @cached_property
    def kept(self) -> tuple[Ids, Ids]:
        """[C] twice: as `ChoiceColumns.cut`."""
        return self.columns.cut(self.length)

    @cached_property
    def begins(self) -> Ids:
        """[N] index of the first token of each example."""
        lengths = self.columns.lengths
        return np.cumsum(lengths) - lengths

    @property
    def sizes(self) -> list[int]:
        """As `ExampleSet.sizes`."""
        return [len(self.columns)]

    @property
    def most_sequences(self) -> int:
        """As `ExampleSet.most_sequences`: the most choices."""
        return int(self.columns.choices.max(initial=1))

    def sequences(self, some: Selection) -> Ids:
        """As `ExampleSet.sequences`, [N]: the choices of each example."""
        return self.columns.choices[some.rows].astype(np.int64)

    def lengths(self, some: Selection) -> Ids:
        """As `ExampleSet.lengths`, [N]."""
        lengths: Ids = self.all_lengths[some.rows]
        return lengths

    @cached_property
    def all_lengths(self) -> Ids:
        """[N] tokens of all sequences of every example."""
        contexts, endings = self.kept
        return self.columns.of_examples(contexts + endings + 3)

    def counts(self, some: Selection) -> StepCounts:
        """As `ExampleSet.counts`: the loss of a question is one, however many choices it has."""
        return StepCounts(predictions=0, sequences=len(some), tokens=int(self.lengths(some).sum()))

    def batch(self, some: Selection) -> MicroBatch:
        """As `ExampleSet.batch`; `sequence_labels` [B, 2] are the number of each choice in its example, counted from 1,
        and whether it is the right one."""
        columns, choices = self.columns, self.sequences(some)
        own = np.repeat(some.rows, choices)
        number = np.arange(len(own)) - np.repeat(np.cumsum(choices) - choices, choices)
        chosen = columns.first_choices[own] + number
        contexts, endings = (kept[chosen] for kept in self.kept)
        ends = np.append(0, np.cumsum(columns.endings, dtype=np.int64))
        first = self.begins[own]
        second = first + columns.contexts[own] + ends[chosen] - ends[columns.first_choices[own]]
        labels = np.stack([number + 1, number == columns.labels[own]], 1).astype(np.int64)
        return pack_texts(columns.tokens, Parts(first, contexts), Parts(second, endings), self.vocabulary, labels)
