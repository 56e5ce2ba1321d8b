"""Exact match and F1 of answers, by the rules of SQuAD's official script for version 2.0.

Answers are compared after normalisation. Version 1.1's script differs only where it has no rule: all its questions have
an answer.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalize(answer: str) -> str:
    """An answer in lower case, without English articles, punctuation and superfluous spaces."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, known: str) -> float:
    """1 if the answers are equal after normalisation, else 0."""
    return float(normalize(answer) == normalize(known))


def f1(answer: str, known: str) -> float:
    """The harmonic mean of precision and recall of an answer's words; if one of the two is empty, whether both are."""
    words, wanted = normalize(answer).split(), normalize(known).split()
    if not words or not wanted:
        return float(words == wanted)
    both = (Counter(words) & Counter(wanted)).total()
    return 2 * both / (len(words) + len(wanted))


class Answered(NamedTuple):
    """The answer to one question."""

    text: str
    """The best answer in the text."""
    none_margin: float
    """How much higher the model scores that there is no answer than this answer; no answer is given above the
    threshold."""
    known: Sequence[str]
    """The correct answers; none if the text has none."""


class AnswerScores(NamedTuple):
    """Means over questions, in percent, as SQuAD's script gives them."""

    exact: float
    f1: float
    questions: int


def score(answers: Iterable[Answered], threshold: float | None = None) -> AnswerScores:
    """The scores of the answers; above `threshold` no answer counts as given (None: an answer is always given)."""
    found = [_score_one(each, threshold is not None and each.none_margin > threshold) for each in answers]
    exact, overlap = (sum(column) for column in zip((0.0, 0.0), *found, strict=True))
    number = max(len(found), 1)
    return AnswerScores(100 * exact / number, 100 * overlap / number, len(found))


def best_threshold(answers: Iterable[Answered]) -> float:
    """The threshold with the highest F1: 0, if none is better than never to answer, else one of the margins."""
    gains = [(each.none_margin, _gain(each)) for each in answers]
    best, threshold, total = 0.0, 0.0, 0.0
    for margin, gain in sorted(gains):
        total += gain
        if total > best:
            best, threshold = total, margin
    return threshold


def _score_one(answer: Answered, none: bool) -> tuple[float, float]:
    if none:
        return float(not answer.known), float(not answer.known)
    known = [each for each in answer.known if normalize(each)] or [""]
    return max(exact_match(answer.text, each) for each in known), max(f1(answer.text, each) for each in known)


def _gain(answer: Answered) -> float:
    """How much F1 answering adds to not answering."""
    return _score_one(answer, False)[1] if answer.known else -1.0 if answer.text else 0.0
