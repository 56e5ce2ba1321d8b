"""Pseudo-perplexity: among how many words a model hesitates, each predicted from the rest of its sentence (Salazar et
al. 2020), with the later pieces of its word hidden, too (`pseudo_likelihood`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bertwright.corpus.words import count_tokens
from bertwright.exams.exam import Score, TextExam
from bertwright.exams.interval import interval
from bertwright.exams.pseudo_likelihood import pseudo_likelihoods
from bertwright.model.text_encoder import Encoder


class Perplexity(TextExam):
    """The pseudo-perplexity of texts, by piece and by word."""

    kind: Literal["perplexity"] = "perplexity"
    most: int = Field(100, gt=0)
    """Texts that are read, from the beginning."""

    def take(self, encoder: Encoder) -> Iterator[Score]:
        """As `Exam.take`."""
        texts = self.read()
        found = pseudo_likelihoods(encoder, texts)
        words = np.array([count_tokens(text) for text in texts])
        for name, counts, said in (
            ("of a piece", found.pieces, "falls with training; its vocabulary decides, too"),
            ("of a word", words, "falls with training; the same for all vocabularies"),
        ):
            value, low, high = interval(np.stack([found.sums, counts], axis=1), perplexity)
            yield Score(self.title, name, value, (low, high), healthy=said, share=False)


def perplexity(items: NDArray[np.float64]) -> NDArray[np.float64]:
    """[S] the perplexity of the sums of logarithms and the counts [S, N, 2] of N texts."""
    sums, counts = np.moveaxis(items.sum(1), -1, 0)
    # A model that finds a text impossible has no finite perplexity; numbers beyond e^50 mean nothing.
    found: NDArray[np.float64] = np.exp(np.minimum(-sums / np.maximum(counts, 1), 50.0))
    return found
