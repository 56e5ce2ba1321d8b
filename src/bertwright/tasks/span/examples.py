"""Questions about texts as arrays, and the batches that are built from them.

    labelled/train.tokens      ids: the question and the text of each example, without [CLS] and [SEP]
    labelled/train.questions   uint16 [N] tokens of each question, cut to `max_query`
    labelled/train.contexts    uint32 [N] tokens of each text
    labelled/train.passages    uint32 [N] number of each text among the distinct ones
    labelled/train.offsets     uint32 [D, 2] first and last character, exclusive, of each token of the distinct texts
    labelled/train.answers     int32 [N, 2] first and last token of the first answer in the text; -1: it has none
    labelled/train.texts       uint8: JSON with the distinct texts, the questions and all their answers
    labelled/train.stride      uint32 [1] tokens that consecutive windows share

A text that is too long for a phase is divided into windows that overlap; each is an example with the whole question.
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

NO_ANSWER = "no answer"
"""What is said where the text does not answer the question."""


@dataclass(frozen=True)
class SpanColumns(Columns):
    """N questions about D tokens of distinct texts; see the module."""

    types: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "questions": "<u2",
            "contexts": "<u4",
            "passages": "<u4",
            "offsets": "<u4",
            "answers": "<i4",
            "texts": "|u1",
            "stride": "<u4",
        }
    )

    questions: NDArray[np.uint16]
    """[N] tokens of each question."""
    contexts: NDArray[np.uint32]
    """[N] tokens of each text."""
    passages: NDArray[np.uint32]
    """[N] number of each text among the distinct ones."""
    offsets: NDArray[np.uint32]
    """[2 D], in pairs."""
    answers: NDArray[np.int32]
    """[2 N], in pairs."""
    texts: NDArray[np.uint8]
    """[bytes] of JSON."""
    stride: NDArray[np.uint32]
    """[S] a single number: the tokens that consecutive windows share."""

    @property
    def lengths(self) -> Ids:
        """As `Columns.lengths`, [N]."""
        lengths: Ids = self.questions.astype(np.int64) + self.contexts
        return lengths

    @cached_property
    def passage_begins(self) -> Ids:
        """[number of distinct texts + 1] index of the first token of each, and the number of their tokens."""
        _, first = np.unique(self.passages, return_index=True)
        return np.append(0, np.cumsum(self.contexts[first], dtype=np.int64))

    @property
    def fit(self) -> bool:
        """As `Columns.fit`."""
        number = len(self.questions)
        same = number == len(self.contexts) == len(self.passages) and len(self.answers) == 2 * number
        return same and len(self.stride) == 1 and len(self.offsets) == 2 * int(self.passage_begins[-1])


@dataclass(frozen=True)
class SpanExamples(ColumnExamples[SpanColumns]):
    """The examples of a split; see `ExampleSet`. An example is [CLS] question [SEP] window of the text [SEP]."""

    column_type = SpanColumns

    @cached_property
    def windows(self) -> Ids:
        """[W, 3] the question of each example, the first token of its window in the text, and the token after its
        last; in the order of the questions."""
        contexts = self.columns.contexts.astype(np.int64)
        room = self.length - 3 - self.columns.questions.astype(np.int64)
        step = np.maximum(room - int(self.columns.stride[0]), 1)
        counts = 1 + np.maximum(-(-(contexts - room) // step), 0)
        question = np.repeat(np.arange(len(counts)), counts)
        number = np.arange(len(question)) - np.repeat(np.cumsum(counts) - counts, counts)
        begin = number * step[question]
        return np.stack([question, begin, np.minimum(begin + room[question], contexts[question])], 1)

    @cached_property
    def begins(self) -> Ids:
        """[N] index of the first token of each question."""
        lengths = self.columns.lengths
        return np.cumsum(lengths) - lengths

    @property
    def sizes(self) -> list[int]:
        """As `ExampleSet.sizes`."""
        return [len(self.windows)]

    def lengths(self, some: Selection) -> Ids:
        """As `ExampleSet.lengths`, [N]."""
        question, begin, end = self.windows[some.rows].T
        lengths: Ids = self.columns.questions[question].astype(np.int64) + end - begin + 3
        return lengths

    def counts(self, some: Selection) -> StepCounts:
        """As `ExampleSet.counts`, from the lengths alone."""
        return StepCounts(predictions=0, sequences=len(some), tokens=int(self.lengths(some).sum()))

    def batch(self, some: Selection) -> MicroBatch:
        """As `ExampleSet.batch`; `sequence_labels` [B, 2] are the first and the last token of the answer in each
        sequence, 0 ([CLS]) if the window does not have all of it."""
        question, begin, end = self.windows[some.rows].T
        asked, first = self.columns.questions[question].astype(np.int64), self.begins[question]
        answers = self.columns.answers.reshape(-1, 2)[question].astype(np.int64)
        whole = (answers[:, 0] >= begin) & (answers[:, 1] < end)
        labels = np.where(whole[:, None], answers + (asked + 2 - begin)[:, None], 0)
        window = Parts(first + asked + begin, end - begin)
        return pack_texts(self.columns.tokens, Parts(first, asked), window, self.vocabulary, labels)
