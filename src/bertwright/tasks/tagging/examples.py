"""Sentences of tagged words as arrays, and the batches that are built from them.

    labelled/train.tokens    ids of the pieces of all words, without [CLS] and [SEP]
    labelled/train.words     uint32 [N] words of each sentence
    labelled/train.pieces    uint16 [W] pieces of each word
    labelled/train.labels    int16 [W] tag number of each word; -1: it has none, and is neither learned nor scored

A sentence that is too long for a phase is divided between words into several examples, so that every word gets a tag.
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
from bertwright.examples.example_set import Ids, Selection


@dataclass(frozen=True)
class TaggedColumns(Columns):
    """N sentences of W tagged words."""

    types: ClassVar[Mapping[str, str]] = MappingProxyType({"words": "<u4", "pieces": "<u2", "labels": "<i2"})

    words: NDArray[np.uint32]
    """[N] words of each sentence."""
    pieces: NDArray[np.uint16]
    """[W] pieces of each word."""
    labels: NDArray[np.int16]
    """[W] tag number of each word; -1: it has none."""

    @property
    def lengths(self) -> Ids:
        """As `Columns.lengths`, [N]."""
        lengths: Ids = np.diff(self.word_begins[np.append(0, np.cumsum(self.words, dtype=np.int64))])
        return lengths

    @cached_property
    def word_begins(self) -> Ids:
        """[W + 1] index of each word's first piece, and the number of pieces."""
        return np.append(0, np.cumsum(self.pieces, dtype=np.int64))

    @property
    def fit(self) -> bool:
        """As `Columns.fit`."""
        return int(self.words.sum(dtype=np.int64)) == len(self.pieces) == len(self.labels)


@dataclass(frozen=True)
class TaggedExamples(ColumnExamples[TaggedColumns]):
    """The examples of a split; see `ExampleSet`. An example is a sentence, or a part of one that is too long."""

    column_type = TaggedColumns

    @cached_property
    def parts(self) -> Ids:
        """[N, 3] the sentence of each example, its first word, and the word after its last; in order."""
        begins, room = self.columns.word_begins, self.length - 2
        ends = np.cumsum(self.columns.words, dtype=np.int64)
        starts = ends - self.columns.words
        parts: list[tuple[int, int, int]] = []
        for sentence, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            while begins[end] - begins[start] > room:
                # A word that alone is longer than the room is cut when the batch is built.
                inside = int(np.searchsorted(begins, begins[start] + room, side="right")) - 1
                parts.append((sentence, start, max(inside, start + 1)))
                start = parts[-1][2]
            if end > start:
                parts.append((sentence, start, end))
        return np.array(parts, np.int64).reshape(-1, 3)

    @property
    def sizes(self) -> list[int]:
        """As `ExampleSet.sizes`."""
        return [len(self.parts)]

    def lengths(self, some: Selection) -> Ids:
        """As `ExampleSet.lengths`, [N]."""
        begin, end = self.columns.word_begins[self.parts[some.rows, 1:]].T
        lengths: Ids = np.minimum(end - begin + 2, self.length)
        return lengths

    def batch(self, some: Selection) -> MicroBatch:
        """As `ExampleSet.batch`: [CLS] pieces [SEP], with the first piece of each tagged word as a prediction."""
        _, first_word, end_word = self.parts[some.rows].T
        begin, lengths = self.columns.word_begins[first_word], self.lengths(some)
        ends = np.cumsum(lengths)
        starts = ends - lengths
        place = np.arange(ends[-1] if len(ends) else 0) - np.repeat(starts, lengths)
        inside = np.repeat(begin, lengths) + place - 1
        tokens = np.take(self.columns.tokens, inside, mode="clip").astype(np.int64)
        tokens[starts], tokens[ends - 1] = self.vocabulary.cls, self.vocabulary.sep
        counts = end_word - first_word
        of_word = np.arange(counts.sum()) + np.repeat(first_word - (np.cumsum(counts) - counts), counts)
        labels = self.columns.labels[of_word].astype(np.int64)
        where = self.columns.word_begins[of_word] + np.repeat(starts + 1 - begin, counts)
        known = labels >= 0
        bounds = np.append(0, ends).astype(np.int32)
        return MicroBatch(
            token_ids=tokens,
            position_ids=place,
            segment_ids=np.zeros_like(tokens),
            cu_seqlens=bounds,
            cu_rows=bounds,
            max_row=int(lengths.max(initial=0)),
            prediction_positions=where[known],
            labels=labels[known],
            weights=np.ones(int(known.sum()), np.float32),
            sequence_labels=np.zeros(len(some), np.int64),
            sequence_weights=np.zeros(len(some), np.float32),
        )
