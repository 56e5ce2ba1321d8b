"""Acceptability: sentences that speakers accept must be more probable, piece by piece, than those that they reject.

Nothing is fine-tuned: a sentence's score is the mean over its pieces of its pseudo-log-likelihood. The area under the
ROC curve is the share of pairs of an accepted and a rejected sentence in which the accepted one scores higher; a tie
counts half. Matthews' correlation is that of the best threshold for these very sentences, so it is a little too good,
and never below 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bertwright.core.config import UserPath
from bertwright.core.errors import DataError
from bertwright.examples.labelled.records import records
from bertwright.exams.exam import RISES, Exam, Score, evenly
from bertwright.exams.interval import interval
from bertwright.exams.pseudo_likelihood import pseudo_likelihoods
from bertwright.model.text_encoder import Encoder

_COLA = ("source", "label", "mark", "sentence")
"""The columns of CoLA, which has no header."""
_TEXTS = ("sentence", "Sent", "text")
_ACCEPTED = {"1": 1.0, "0": 0.0}


class Acceptability(Exam):
    """Sentences that speakers accept must be more probable than those that they reject."""

    kind: Literal["acceptability"] = "acceptability"
    data: UserPath
    """Sentences with the label 1 or 0: CoLA's file, HuCOLA's, or columns `sentence` and `label`."""
    most: int = Field(400, ge=0)
    """Sentences that are read, spread evenly; 0: all."""

    def take(self, encoder: Encoder) -> Iterator[Score]:
        """As `Exam.take`."""
        sentences = read_sentences(self.data)
        sentences = evenly(sentences, self.most or len(sentences))
        found = pseudo_likelihoods(encoder, [text for text, _ in sentences])
        means = found.sums / np.maximum(found.pieces, 1)
        items = np.stack([means, [accepted for _, accepted in sentences]], axis=1)
        value, low, high = interval(items, areas)
        yield Score(self.title, "area under the curve", value, (low, high), 0.5, RISES)
        yield Score(self.title, "best Matthews", best_matthews(items), healthy="0: nothing is known", share=False)


def read_sentences(file: Path) -> list[tuple[str, float]]:
    """The sentences of a file, each with 1 if it is accepted, else 0.

    Raises `DataError` naming the file if it has no such columns, or sentences of one kind only.
    """
    found: list[tuple[str, float]] = []
    for place, record in records(file, _COLA):
        text = next((str(record[name]) for name in _TEXTS if record.get(name)), "")
        accepted = _ACCEPTED.get(str(record.get("label")))
        if not text or accepted is None:
            raise DataError(f"{file}: {place} needs a sentence, and the label 1 or 0. Correct it.")
        found.append((text, accepted))
    if len({accepted for _, accepted in found}) < 2:
        raise DataError(f"{file} has no sentences of both kinds, accepted and rejected. Give a file with some.")
    return found


def areas(items: NDArray[np.float64]) -> NDArray[np.float64]:
    """[S] the area under the ROC curve of the scores and labels [S, N, 2] of N sentences (Mann and Whitney 1947)."""
    found = np.empty(len(items))
    for number, (scores, labels) in enumerate(np.moveaxis(items, -1, 1)):
        rejected, accepted = np.sort(scores[labels == 0]), scores[labels == 1]
        below = np.searchsorted(rejected, accepted, side="left") + np.searchsorted(rejected, accepted, side="right")
        # A sample without one of both kinds says nothing.
        found[number] = below.mean() / 2 / len(rejected) if len(rejected) and len(accepted) else 0.5
    return found


def best_matthews(items: NDArray[np.float64]) -> float:
    """The highest Matthews correlation that a threshold of the scores [N, 2] gives with the labels beside them."""
    scores, labels = items[np.argsort(-items[:, 0], kind="stable")].T
    # After each place where the score changes, all sentences up to it are accepted.
    ends = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)
    right, said, all_right = np.cumsum(labels)[ends], ends + 1.0, labels.sum()
    covariance = right * len(labels) - said * all_right
    spread = np.sqrt(said * (len(labels) - said) * all_right * (len(labels) - all_right))
    return float(np.divide(covariance, spread, out=np.zeros_like(spread), where=spread > 0).max())
