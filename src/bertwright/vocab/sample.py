"""Samples the part of a corpus that a vocabulary is trained or measured on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from bertwright.core import rng
from bertwright.core.artifact import Artifact
from bertwright.corpus.text import read_documents, shard_names

MEASURED_CHARACTERS = 2_000_000


@dataclass
class Sample:
    """Documents sampled from an entire corpus, of about `max_bytes` of text and at most about `max_sentences`
    sentences (0: any number); counted while they are read.

    Whether a document is drawn depends only on its position in the corpus and on `seed`; no sample is kept in memory.
    """

    corpus: Artifact
    max_bytes: int
    seed: int
    max_sentences: int = 0
    documents: int = 0
    bytes: int = 0

    @property
    def share(self) -> float:
        """The probability that a document is drawn."""
        counts = self.corpus.counts
        of_sentences = self.max_sentences / max(1, counts["sentences"]) if self.max_sentences else 1.0
        return float(min(1.0, self.max_bytes / max(1, counts["text_bytes"]), of_sentences))

    def sentences(self) -> Iterator[str]:
        """Yield the sentences of the drawn documents in corpus order; call once, because it updates the counts."""
        stream = rng.key(self.seed, "vocab sample")
        for number, name in enumerate(shard_names(self.corpus)):
            documents = list(read_documents(self.corpus, name))
            # Keyed by position: no document's draw depends on how many were drawn before.
            draws = rng.uniform(rng.fold(stream, number), np.arange(len(documents)))
            for place in np.flatnonzero(draws < self.share).tolist():
                self.documents += 1
                self.bytes += sum(len(sentence.encode()) + 1 for sentence in documents[place]) + 1
                yield from documents[place]


def first_sentences(corpus: Artifact, characters: int = MEASURED_CHARACTERS) -> list[str]:
    """Sentences from the beginning of every shard, about `characters` in total, to measure vocabularies on."""
    names = shard_names(corpus)
    share = characters // max(1, len(names))
    return [sentence for name in names for sentence in _first(read_documents(corpus, name), share)]


def _first(documents: Iterable[list[str]], characters: int) -> Iterator[str]:
    taken = 0
    for document in documents:
        for sentence in document:
            if taken >= characters:
                return
            taken += len(sentence)
            yield sentence
