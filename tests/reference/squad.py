"""The rules of SQuAD's scores, version 2.0, in plain Python: one question at a time, and every threshold tried."""

import re
import string
from collections.abc import Sequence
from typing import NamedTuple


class Asked(NamedTuple):
    known: Sequence[str]
    given: str
    none: float
    """The model's number for no answer; compared with the threshold."""


def words_of(text: str) -> list[str]:
    kept = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return re.sub(r"\b(?:the|an|a)\b", " ", kept).split()


def exact(given: str, known: str) -> float:
    return 1.0 if words_of(given) == words_of(known) else 0.0


def overlap(given: str, known: str) -> float:
    got, wanted = words_of(given), words_of(known)
    if not got or not wanted:
        return exact(given, known)
    shared = sum(min(got.count(word), wanted.count(word)) for word in set(got))
    if not shared:
        return 0.0
    precision, recall = shared / len(got), shared / len(wanted)
    return 2 * precision * recall / (precision + recall)


def best(rule: object, asked: Asked) -> float:
    """The score of an answer that is given: of the known ones that are not empty, the best counts."""
    assert callable(rule)
    return max(rule(asked.given, each) for each in [k for k in asked.known if words_of(k)] or [""])


def percent(rule: object, every: Sequence[Asked], threshold: float) -> float:
    scores = [float(not each.known) if each.none > threshold else best(rule, each) for each in every]
    return 100 * sum(scores) / len(every)


def best_threshold(rule: object, every: Sequence[Asked]) -> float:
    """The smallest of the models' numbers up to which answering gains most; 0 if it gains nothing."""
    gains = [
        (each.none, best(rule, each) if each.known else -1.0 if each.given else 0.0)
        for each in sorted(every, key=lambda each: each.none)
    ]
    found, most = 0.0, 0.0
    for number in range(1, len(gains) + 1):
        if (gained := sum(gain for _, gain in gains[:number])) > most + 1e-12:
            found, most = gains[number - 1][0], gained
    return found
