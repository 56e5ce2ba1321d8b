"""Which documents are held out of training: a hash of their text decides, so a new dump keeps the choice."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bertwright.core.artifact import Artifact
from bertwright.core.rng import fold, key, uniform
from bertwright.corpus.text import read_documents, shard_names


def text_hash(sentences: Sequence[str]) -> int:
    """The 64-bit hash of a document's text: BLAKE2b over its sentences joined by newlines."""
    return int.from_bytes(hashlib.blake2b("\n".join(sentences).encode(), digest_size=8).digest(), "little")


def is_heldout(hashes: NDArray[np.uint64], share: float) -> NDArray[np.bool_]:
    """[D] whether each document is held out; depends only on its hash, `hashes` [D], so a new dump keeps the choice."""
    return heldout_place(hashes) < share


def heldout_place(hashes: NDArray[np.uint64]) -> NDArray[np.float64]:
    """[D] the value in [0, 1) that the held-out share must exceed for each document of `hashes` [D] to be held out."""
    return uniform(key("held-out documents"), fold(0, hashes))


def heldout_documents(corpus: Artifact, share: float) -> list[list[str]]:
    """The documents of a corpus that the stage `examples` holds out, each a list of its sentences."""
    return [document for is_held, document in split_documents(corpus, share) if is_held]


def split_documents(corpus: Artifact, share: float) -> Iterator[tuple[bool, list[str]]]:
    """Each document of a corpus, with whether the stage `examples` holds it out."""
    for name in shard_names(corpus):
        for document in read_documents(corpus, name):
            yield bool(is_heldout(np.array([text_hash(document)], np.uint64), share)[0]), document
