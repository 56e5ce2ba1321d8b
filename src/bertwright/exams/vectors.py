"""The shape of a model's vectors: whether they tell texts apart, and which words it finds alike.

Names carry shapes: N vectors, H hidden.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bertwright.exams.exam import Score, TextExam
from bertwright.model.text_encoder import Encoder
from bertwright.vocab.entries import CONTINUATION, SPECIALS

PAIRS = 10_000


class Vectors(TextExam):
    """Whether the vectors of texts differ, or have collapsed."""

    kind: Literal["vectors"] = "vectors"

    def take(self, encoder: Encoder) -> Iterator[Score]:
        """As `Exam.take`."""
        vectors = encoder.encode(self.read())
        yield Score(self.title, "mean cosine", mean_cosine(vectors), healthy="below 0.9", share=False)
        yield Score(self.title, "deviation", deviation(vectors), healthy="0: all texts get one vector", share=False)


def mean_cosine(vectors_NH: NDArray[np.float32]) -> float:
    """The mean cosine similarity of random pairs of different vectors: above 0.9 they hardly differ (Ethayarajh 2019),
    and 1 is a model that has collapsed."""
    random = np.random.default_rng(0)
    unit = vectors_NH / np.maximum(np.linalg.norm(vectors_NH, axis=1, keepdims=True), 1e-12)
    first = random.integers(len(unit), size=PAIRS)
    second = (first + random.integers(1, len(unit), size=PAIRS)) % len(unit)
    return float((unit[first] * unit[second]).sum(1).mean())


def deviation(vectors_NH: NDArray[np.float32]) -> float:
    """The mean over dimensions of the standard deviation over vectors, relative to their root mean square: 0 if all
    vectors are the same."""
    size = float(np.sqrt(np.square(vectors_NH, dtype=np.float64).mean()))
    return float(vectors_NH.std(0, dtype=np.float64).mean()) / max(size, 1e-12)


def neighbours(encoder: Encoder, words: Sequence[str], number: int = 5) -> dict[str, list[str]]:
    """The entries whose embeddings are nearest to that of each word, by cosine; a word that is no entry is left out."""
    vocabulary = encoder.tokenizer.vocabulary
    weights = encoder.model.encoder.token_weight.detach().float().cpu().numpy()[: len(vocabulary)]
    unit = weights / np.maximum(np.linalg.norm(weights, axis=1, keepdims=True), 1e-12)
    whole = np.array([not entry.startswith(CONTINUATION) and entry not in SPECIALS for entry in vocabulary])
    ids = {entry: number for number, entry in enumerate(vocabulary)}
    found: dict[str, list[str]] = {}
    for word in words:
        if word in ids:
            similar = np.where(whole, unit @ unit[ids[word]], -2.0)
            similar[ids[word]] = -2.0
            found[word] = [vocabulary[i] for i in np.argsort(-similar)[:number].tolist()]
    return found
