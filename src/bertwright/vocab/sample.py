"""The part of a corpus that a vocabulary is learnt from, or measured on."""

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
    """Documents drawn from everywhere in a corpus, about `most_bytes` of its text and no more than about
    `most_sentences` (0: any number); counted while they are read.

    Whether a document is drawn depends on its place in the corpus and on `seed` alone, and nothing is kept in memory.
    """

    corpus: Artifact
    most_bytes: int
    seed: int
    most_sentences: int = 0
    documents: int = 0
    bytes: int = 0

    @property
    def share(self) -> float:
        """The probability of each document to be drawn."""
        counts = self.corpus.counts
        of_sentences = self.most_sentences / max(1, counts["sentences"]) if self.most_sentences else 1.0
        return float(min(1.0, self.most_bytes / max(1, counts["text_bytes"]), of_sentences))

    def sentences(self) -> Iterator[str]:
        """The sentences of the drawn documents, in the order of the corpus; to be read once."""
        stream = rng.key(self.seed, "vocab sample")
        for number, name in enumerate(shard_names(self.corpus)):
            documents = list(read_documents(self.corpus, name))
            # By place, not by a generator: no document's draw depends on how many were drawn before.
            draws = rng.uniform(rng.fold(stream, number), np.arange(len(documents)))
            for place in np.flatnonzero(draws < self.share).tolist():
                self.documents += 1
                self.bytes += sum(len(sentence.encode()) + 1 for sentence in documents[place]) + 1
                yield from documents[place]


def first_sentences(corpus: Artifact, characters: int = MEASURED_CHARACTERS) -> list[str]:
    """Sentences from the beginning of every shard, about `characters` in all: what vocabularies are measured on."""
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
