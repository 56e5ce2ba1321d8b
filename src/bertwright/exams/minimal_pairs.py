"""Minimal pairs: of two sentences that differ in one point of grammar, the right one must be more probable.

Reads the format of BLiMP (Warstadt et al. 2020) and the published columns of MultiBLiMP (Jumelet et al. 2025). A tie is
wrong: a model that finds both equally probable knows nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from bertwright.core.config import UserPath
from bertwright.core.errors import DataError
from bertwright.examples.labelled.records import records
from bertwright.exams.exam import Exam, Score, evenly, share_of
from bertwright.exams.pseudo_likelihood import pseudo_likelihoods
from bertwright.model.text_encoder import Encoder

CHANCE = 0.5
_GOOD = ("sentence_good", "sen", "good")
_BAD = ("sentence_bad", "wrong_sen", "bad")
_KIND = ("field", "phenomenon", "UID")
"""Names of columns, those of BLiMP first, then those of MultiBLiMP."""


class Pair(NamedTuple):
    """Two sentences, of which one is right."""

    good: str
    bad: str
    kind: str
    """What they differ in; "" if the file does not say."""


def read_pairs(file: Path, most: int = 0) -> list[Pair]:
    """The pairs of a file; at most `most` of each kind if it is not 0, spread evenly.

    Raises `DataError` naming the file if it has no such columns or no pairs.
    """
    pairs: dict[str, list[Pair]] = {}
    for place, record in records(file):
        if not (found := pair_columns(record)):
            raise DataError(
                f"{file}: {place} has the columns {', '.join(record)}; needed are sentence_good and sentence_bad."
            )
        good, bad = found
        kind = next((name for name in _KIND if name in record), "")
        if record[good] and record[bad]:
            pairs.setdefault(str(record.get(kind, "")), []).append(
                Pair(str(record[good]), str(record[bad]), str(record.get(kind, "")))
            )
    if not pairs:
        raise DataError(f"{file} has no pairs of sentences. Give a file with some.")
    return [pair for each in pairs.values() for pair in evenly(each, most or len(each))]


def pair_columns(record: Mapping[str, Any]) -> tuple[str, str] | None:
    """The names of the columns of the right and of the wrong sentence; None if a record lacks one."""
    good, bad = (next((name for name in names if name in record), "") for names in (_GOOD, _BAD))
    return (good, bad) if good and bad else None


class MinimalPairs(Exam):
    """Of two sentences that differ in one point of grammar, the right one must be more probable."""

    kind: Literal["pairs"] = "pairs"
    data: UserPath
    """A file in the format of BLiMP or of MultiBLiMP."""
    most: int = Field(10, ge=0)
    """Pairs of each phenomenon, spread evenly; 0: all."""

    def take(self, encoder: Encoder) -> Iterator[Score]:
        """As `Exam.take`."""
        yield from score_pairs(encoder, read_pairs(self.data, self.most), self.title)


def score_pairs(encoder: Encoder, pairs: Sequence[Pair], exam: str) -> Iterator[Score]:
    """Yield the share of pairs whose right sentence is the more probable one, of all and of each kind."""
    found = pseudo_likelihoods(encoder, [text for pair in pairs for text in (pair.good, pair.bad)])
    good, bad = found.sums.reshape(-1, 2).T
    right, kinds = (good > bad).astype(np.float64), np.array([pair.kind for pair in pairs])
    named = sorted(set(kinds.tolist()))
    for kind in ([] if len(named) == 1 else ["all"]) + named:
        chosen = right if kind == "all" else right[kinds == kind]
        yield share_of(chosen, exam, kind or "all", CHANCE)
