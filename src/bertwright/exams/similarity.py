"""Whether the cosine of the vectors of two sentences agrees with people's scores of how alike the sentences are, as in
the STS benchmark (Cer et al. 2017).

The score is Spearman's rank correlation: only the order of the cosines counts, so vectors whose cosines are all near 1
are not at a disadvantage.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bertwright.core.config import UserPath
from bertwright.core.errors import DataError
from bertwright.examples.labelled.records import records
from bertwright.exams.exam import RISES, Exam, Score, evenly
from bertwright.exams.interval import interval
from bertwright.exams.retrieval import Encode, unit
from bertwright.model.text_encoder import Encoder

COLUMNS = ("sentence1", "sentence2", "score")


class Likeness(NamedTuple):
    """Two sentences, and how alike people find them."""

    first: str
    second: str
    score: float


class Similarity(Exam):
    """Whether the cosine of two sentences agrees with people's scores."""

    kind: Literal["sts"] = "sts"
    data: UserPath
    """A file with the columns sentence1, sentence2 and score, as those of STS-B."""
    most: int = Field(2_000, ge=2)
    """Pairs that are scored, spread evenly."""

    def take(self, encoder: Encoder) -> Iterator[Score]:
        """As `Exam.take`."""
        yield from score_similarity(evenly(read_likeness(self.data), self.most), encoder.encode, self.title)


def read_likeness(file: Path) -> list[Likeness]:
    """The pairs of a file. Raises `DataError` naming the line that has no two sentences and a number, and if there are
    fewer than three pairs or all have the same score."""
    found = []
    for place, record in records(file):
        first, second, score = (record.get(name) for name in COLUMNS)
        if not isinstance(first, str) or not isinstance(second, str) or (value := _number(score)) is None:
            raise DataError(
                f"{file}: {place} has no two sentences with a score: its columns are {', '.join(map(str, record))}; "
                f"needed are {', '.join(COLUMNS)}, the last one a number."
            )
        found.append(Likeness(first, second, value))
    if len(found) < 3 or len({each.score for each in found}) < 2:
        raise DataError(f"{file} has too few pairs, or one score for all, so nothing can be compared.")
    return found


def score_similarity(pairs: Sequence[Likeness], encode: Encode, title: str) -> Iterator[Score]:
    """Yield Spearman's correlation of cosines and people's scores."""
    vectors_NH = unit(encode([text for pair in pairs for text in pair[:2]]))
    cosines_N = (vectors_NH[::2] * vectors_NH[1::2]).sum(1).astype(np.float64)
    both_N2 = np.stack([cosines_N, [pair.score for pair in pairs]], 1)
    value, low, high = interval(both_N2, lambda chosen: spearman(chosen[..., 0], chosen[..., 1]))
    said = f"{RISES}; vectors of words: 40 to 60, good encoders: 80 to 90"
    yield Score(title, "Spearman", value, (low, high), 0.0, said)


def spearman(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Spearman's rank correlation of the last axis of two arrays [S, N], as [S]; 0 where all values are the same."""
    ranks = [_ranked(each) - (each.shape[-1] - 1) / 2 for each in (first, second)]
    product = (ranks[0] * ranks[1]).sum(-1)
    sizes = np.sqrt(np.square(ranks[0]).sum(-1) * np.square(ranks[1]).sum(-1))
    result: NDArray[np.float64] = np.divide(product, sizes, out=np.zeros_like(product), where=sizes > 0)
    return result


def _ranked(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The ranks along the last axis from 0; equal values have the mean of theirs."""
    if values.ndim > 1:
        return np.stack([_ranked(row) for row in values])
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: NDArray[np.float64] = (ends - (counts + 1) / 2)[group]
    return ranks


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
