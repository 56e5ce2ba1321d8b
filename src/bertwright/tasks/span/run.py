"""The stage `examples` for answer spans: tokenises questions and texts, and stores where each token stands."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as FastTokenizer

from bertwright.core.artifact import Artifact
from bertwright.core.stage_context import StageContext
from bertwright.examples.config import ExamplesConfig, PlanSet
from bertwright.examples.example_set import Ids
from bertwright.examples.own_examples import Kind, build_own
from bertwright.examples.run_tasks import Inputs
from bertwright.examples.store import token_dtype
from bertwright.tasks.span.config import SpanFiles
from bertwright.tasks.span.examples import NO_ANSWER, SpanColumns
from bertwright.tasks.span.files import Question
from bertwright.vocab.tokenizer import Tokenizer

_AT_ONCE = 1024
"""Texts tokenised together."""


def run(config: ExamplesConfig, sets: tuple[PlanSet, ...], inputs: Inputs, context: StageContext) -> Artifact:
    """Build the examples artifact from files of questions; see `build_own`."""
    files = inputs.imported[0].files
    assert isinstance(files, SpanFiles)
    return build_own(SpanKind(files), config, sets, inputs, context)


class SpanKind(Kind[SpanFiles, SpanColumns]):
    """See `Kind`."""

    def columns(self, examples: Sequence[Question], tokenizer: Tokenizer) -> SpanColumns:
        """As `Kind.columns`; by the library's own tokenizer, which knows the characters of each token."""
        passages = {text: number for number, text in enumerate(dict.fromkeys(each.context for each in examples))}
        encoded = list(_encoded(tokenizer.fast, list(passages)))
        questions = [
            ids[: self.files.max_query] for ids, _ in _encoded(tokenizer.fast, [each.question for each in examples])
        ]
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


def _encoded(fast: FastTokenizer, texts: Sequence[str]) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint32]]]:
    """Yield the ids [M] of each text and the characters [M, 2] of each token."""
    fast.no_truncation()
    fast.no_padding()
    for start in range(0, len(texts), _AT_ONCE):
        for each in fast.encode_batch(list(texts[start : start + _AT_ONCE]), add_special_tokens=False):
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
