"""What the windows of texts say about questions, from their logits: the likeliest answers.

Names carry shapes: T tokens of a sequence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertwright.examples.batch import MicroBatch
from bertwright.tasks.span.examples import NO_ANSWER, SpanExamples

BEST = 20
"""First and last tokens that are combined in each window, as in BERT's run_squad (n_best_size)."""
SHOWN = 5
"""Answers shown for each question."""


class Candidate(NamedTuple):
    """An answer that the model may give."""

    score: float
    """Sum of the logits of its first and its last token."""
    begin: int
    """Its first character in the text."""
    end: int
    """The character after its last one."""


@dataclass
class Read:
    """What the model says about a question in all windows of its text."""

    none: float = math.inf
    """The smallest score of [CLS] in a window: a text has no answer only if none of its windows has one."""
    candidates: list[Candidate] = field(default_factory=list)


def by_window(logits: Sequence[NDArray[np.float64]], batches: Sequence[MicroBatch]) -> list[NDArray[np.float64]]:
    """The logits [T, 2] of each window, from those of whole batches."""
    return [
        logits_T2[begin:end]
        for batch, logits_T2 in zip(batches, logits, strict=True)
        for begin, end in pairwise(batch.cu_seqlens.tolist())
    ]


def read_answers(
    examples: SpanExamples, rows: NDArray[np.int64], logits: Sequence[NDArray[np.float64]], max_answer: int
) -> dict[int, Read]:
    """What the model says about each question, by its number, from the logits [T, 2] of the windows `rows` [N]."""
    columns, found = examples.columns, dict[int, Read]()
    offsets = columns.offsets.reshape(-1, 2)
    for (question, begin, _), logits_T2 in zip(examples.windows[rows].tolist(), logits, strict=True):
        of_question = found.setdefault(question, Read())
        of_question.none = min(of_question.none, float(logits_T2[0].sum()))
        # Without [CLS], the question and the two [SEP].
        inside = logits_T2[int(columns.questions[question]) + 2 : -1]
        first_token = columns.passage_begins[columns.passages[question]] + begin
        for value, first, last in best_spans(inside, max_answer):
            of_characters = int(offsets[first_token + first, 0]), int(offsets[first_token + last, 1])
            of_question.candidates.append(Candidate(value, *of_characters))
    for each in found.values():
        each.candidates = sorted(set(each.candidates), reverse=True)[:BEST]
    return found


def best_spans(logits_T2: NDArray[np.float64], max_answer: int) -> Iterator[tuple[float, int, int]]:
    """Yield the likeliest spans of at most `max_answer` of the T tokens with logits [T, 2]: score, first, last."""
    firsts, lasts = np.argsort(-logits_T2, axis=0, kind="stable")[:BEST].T
    sums = logits_T2[firsts, 0][:, None] + logits_T2[lasts, 1]
    lengths = lasts - firsts[:, None] + 1
    allowed = np.argwhere((lengths >= 1) & (lengths <= max_answer))
    order = np.argsort(-sums[tuple(allowed.T)], kind="stable")[:BEST]
    for i, k in allowed[order].tolist():
        yield float(sums[i, k]), int(firsts[i]), int(lasts[k])


def guesses(context: str, read: Read, threshold: float | None) -> list[dict[str, Any]]:
    """The likeliest answers; with a threshold, that there is none is one of them, likeliest exactly above it."""
    found = [(each.score, context[each.begin : each.end]) for each in read.candidates]
    if threshold is not None:
        found.append((read.none - threshold, NO_ANSWER))
    if not found:
        return []
    values = np.array([value for value, _ in found])
    shares = np.exp(values - values.max())
    ranked = sorted(zip((shares / shares.sum()).tolist(), (text for _, text in found), strict=True), reverse=True)
    return [{"token": text, "probability": share} for share, text in ranked[:SHOWN]]
