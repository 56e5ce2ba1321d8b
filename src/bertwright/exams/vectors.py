"""The shape of a model's vectors: whether they tell texts apart, and which words it finds alike.

Names carry shapes: N vectors, H hidden.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bertwright.exams.exam import Exam, Score, TextExam
from bertwright.model.text_encoder import Encoder
from bertwright.tasks.pretraining.verdict import ALIKE, said_of_vectors
from bertwright.vocab.entries import CONTINUATION, SPECIALS

PAIRS = 10_000
NEIGHBOURS = 5


class Vectors(TextExam):
    """Whether the vectors of texts differ, or have collapsed."""

    kind: Literal["vectors"] = "vectors"

    def take(self, encoder: Encoder) -> Iterator[Score]:
        """As `Exam.take`."""
        vectors = encoder.encode(self.read())
        cosine = mean_cosine(vectors)
        # Above, the remedy stands where the value is read.
        healthy = f"below {ALIKE}" if cosine <= ALIKE else said_of_vectors(cosine)
        yield Score(self.title, "mean cosine", cosine, healthy=healthy, share=False)
        yield Score(self.title, "deviation", deviation(vectors), healthy="0: all texts get one vector", share=False)


class Neighbours(Exam):
    """Which entries of the vocabulary have embeddings like those of some words: to be read, not compared."""

    kind: Literal["neighbours"] = "neighbours"
    words: tuple[str, ...] = Field(min_length=1)
    """The words; one that is no entry is left out."""

    def take(self, encoder: Encoder) -> Iterator[Score]:
        """As `Exam.take`: the cosine of the nearest entry, and the nearest ones as its text."""
        for word, found in neighbours(encoder, self.words).items():
            text = ", ".join(entry for entry, _ in found)
            said = "words that are alike; fragments or the same ones for all words: nothing is learned"
            yield Score(self.title, word, found[0][1], healthy=said, share=False, text=text)


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


def neighbours(encoder: Encoder, words: Sequence[str], number: int = NEIGHBOURS) -> dict[str, list[tuple[str, float]]]:
    """The entries whose embeddings are nearest to that of each word, with their cosines, nearest first; a word that is
    no entry, in lower case if the vocabulary is, is left out."""
    vocabulary = encoder.tokenizer.vocabulary
    weights = encoder.model.encoder.token_weight.detach().float().cpu().numpy()[: len(vocabulary)]
    unit = weights / np.maximum(np.linalg.norm(weights, axis=1, keepdims=True), 1e-12)
    whole = np.array([not entry.startswith(CONTINUATION) and entry not in SPECIALS for entry in vocabulary])
    found: dict[str, list[tuple[str, float]]] = {}
    for word in words:
        pieces, _ = encoder.tokenizer.encode_texts([word])
        if len(pieces) == 1 and whole[pieces[0]]:
            similar = np.where(whole, unit @ unit[pieces[0]], -2.0)
            similar[pieces[0]] = -2.0
            nearest = np.argsort(-similar, kind="stable")[:number].tolist()
            found[word] = [(vocabulary[i], float(similar[i])) for i in nearest]
    return found
