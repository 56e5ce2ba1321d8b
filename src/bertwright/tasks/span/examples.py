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

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as FastTokenizer

from bertwright.core.artifact import Artifact
from bertwright.core.stage_context import StageContext
from bertwright.examples.batch import MicroBatch
from bertwright.examples.columns import Columns
from bertwright.examples.config import ExamplesConfig, PlanSet
from bertwright.examples.example_set import ExampleSet, Ids, Selection, StepCounts
from bertwright.examples.own_examples import Kind, build_own
from bertwright.examples.run_tasks import Inputs
from bertwright.examples.store import Split, token_dtype
from bertwright.examples.vocabulary import Vocabulary
from bertwright.tasks.span.config import SpanFiles
from bertwright.tasks.span.files import Question
from bertwright.vocab.tokenizer import Tokenizer

NO_ANSWER = "no answer"
"""What is said where the text does not answer the question."""
_AT_ONCE = 1024
"""Texts tokenised together."""


def run(config: ExamplesConfig, sets: tuple[PlanSet, ...], inputs: Inputs, context: StageContext) -> Artifact:
    """Build the examples artifact from files of questions; see `build_own`."""
    files = inputs.imported[0].files
    assert isinstance(files, SpanFiles)
    fast = FastTokenizer.from_file(str(inputs.vocab.file("tokenizer.json")))
    return build_own(SpanKind(files, fast), config, sets, inputs, context)


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


class SpanKind(Kind[SpanFiles, SpanColumns]):
    """See `Kind`."""

    def __init__(self, files: SpanFiles, fast: FastTokenizer) -> None:
        super().__init__(files)
        self._fast = fast
        self._fast.no_truncation()
        self._fast.no_padding()

    def columns(self, examples: Sequence[Question], tokenizer: Tokenizer) -> SpanColumns:
        """As `Kind.columns`; by the library's own tokenizer, which knows the characters of each token."""
        passages = {text: number for number, text in enumerate(dict.fromkeys(each.context for each in examples))}
        encoded = list(self._encode(list(passages)))
        questions = [ids[: self.files.max_query] for ids, _ in self._encode([each.question for each in examples])]
        of_example = [encoded[passages[each.context]] for each in examples]
        answers = [_tokens_of(each, offsets) for each, (_, offsets) in zip(examples, of_example, strict=True)]
        parts = [part for question, (ids, _) in zip(questions, of_example, strict=True) for part in (question, ids)]
        known = [
            {"id": each.id, "question": each.question, "answers": [a.text for a in each.answers]} for each in examples
        ]
        text = json.dumps({"contexts": list(passages), "questions": known}, ensure_ascii=False)
        empty = np.zeros(0, np.uint32)
        return SpanColumns(
            np.concatenate([empty, *parts]).astype(token_dtype(len(tokenizer.vocabulary))),
            np.array([len(ids) for ids in questions], np.uint16),
            np.array([len(ids) for ids, _ in of_example], np.uint32),
            np.array([passages[each.context] for each in examples], np.uint32),
            np.concatenate([empty, *(offsets.ravel() for _, offsets in encoded)]),
            np.array(answers, np.int32).ravel(),
            np.frombuffer(text.encode(), np.uint8),
            np.array([self.files.stride], np.uint32),
        )

    def classes(self, columns: SpanColumns) -> Ids:
        """As `Kind.classes`, [labels]; empty, because places in a text are no classes."""
        return np.zeros(0, np.int64)

    def baseline(self, train: SpanColumns, heldout: SpanColumns) -> dict[str, Any]:
        """As `Kind.baseline`: the share of the questions that are right if no answer is ever given."""
        return {"majority": float((heldout.answers[::2] < 0).mean()), "majority_label": NO_ANSWER}

    def _encode(self, texts: Sequence[str]) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint32]]]:
        """Yield the ids [M] of each text and the characters [M, 2] of each token."""
        for start in range(0, len(texts), _AT_ONCE):
            for each in self._fast.encode_batch(list(texts[start : start + _AT_ONCE]), add_special_tokens=False):
                yield np.array(each.ids, np.uint32), np.array(each.offsets, np.uint32).reshape(-1, 2)


def _tokens_of(question: Question, offsets: NDArray[np.uint32]) -> tuple[int, int]:
    """The first and the last token that have characters of the first answer; -1 if there is no answer, or no token."""
    last_token = len(offsets) - 1
    if not question.answers or last_token < 0:
        return -1, -1
    answer = question.answers[0]
    first = min(int(np.searchsorted(offsets[:, 1], answer.begin, side="right")), last_token)
    last = int(np.searchsorted(offsets[:, 0], answer.end, side="left")) - 1
    return first, max(first, last)


@dataclass(frozen=True)
class SpanExamples(ExampleSet):
    """The examples of a split; see `ExampleSet`. An example is [CLS] question [SEP] window of the text [SEP]."""

    columns: SpanColumns
    length: int
    """Maximum length of an example, special tokens included (tokens)."""
    vocabulary: Vocabulary

    @classmethod
    def open(cls, examples: Artifact, split: Split, length: int, vocab: Artifact | None = None) -> SpanExamples:
        """Open a split of an examples artifact. Raises `ArtifactError` if it was made for another task, is damaged, or
        has another vocabulary than `vocab`."""
        vocabulary = Vocabulary.open(examples, vocab)
        return cls(SpanColumns.open(examples, split), length, vocabulary)

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

    @property
    def arrays(self) -> Iterable[NDArray[Any]]:
        """As `ExampleSet.arrays`: of all columns, of any shape."""
        return vars(self.columns).values()

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
        asked, lengths = self.columns.questions[question].astype(np.int64), self.lengths(some)
        ends = np.cumsum(lengths)
        starts = ends - lengths
        place = np.arange(ends[-1] if len(ends) else 0) - np.repeat(starts, lengths)
        asked_T, first_T, begin_T = (np.repeat(each, lengths) for each in (asked, self.begins[question], begin))
        second = place > asked_T + 1
        # Indices at [CLS] and [SEP] point next to their text, possibly outside the array: clipped, then overwritten.
        inside = first_T + np.where(second, begin_T + place - 2, place - 1)
        tokens = np.take(self.columns.tokens, inside, mode="clip").astype(np.int64)
        tokens[starts] = self.vocabulary.cls
        tokens[starts + asked + 1] = tokens[ends - 1] = self.vocabulary.sep
        answers = self.columns.answers.reshape(-1, 2)[question].astype(np.int64)
        whole = (answers[:, 0] >= begin) & (answers[:, 1] < end)
        bounds, none = np.append(0, ends).astype(np.int32), np.zeros(0, np.int64)
        return MicroBatch(
            token_ids=tokens,
            position_ids=place,
            segment_ids=second.astype(np.int64),
            cu_seqlens=bounds,
            cu_rows=bounds,
            max_row=int(lengths.max(initial=0)),
            prediction_positions=none,
            labels=none,
            weights=np.zeros(0, np.float32),
            sequence_labels=np.where(whole[:, None], answers + (asked + 2 - begin)[:, None], 0),
            sequence_weights=np.ones(len(some), np.float32),
        )
