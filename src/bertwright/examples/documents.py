"""Tokenised documents: built from sentences, selected by the hash of their text, and split."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import fold, key, uniform
from bertwright.examples.store import Documents

LONGEST_SENTENCE = 65_535
"""Maximum number of tokens of a sentence in the store, which keeps lengths in 16 bits."""


def text_hash(sentences: Sequence[str]) -> int:
    """The 64-bit hash of a document's text: BLAKE2b over its sentences joined by newlines."""
    return int.from_bytes(hashlib.blake2b("\n".join(sentences).encode(), digest_size=8).digest(), "little")


def is_heldout(hashes: NDArray[np.uint64], share: float) -> NDArray[np.bool_]:
    """[D] whether each document is held out; depends only on its hash, `hashes` [D], so a new dump keeps the choice."""
    return heldout_place(hashes) < share


def heldout_place(hashes: NDArray[np.uint64]) -> NDArray[np.float64]:
    """[D] the value in [0, 1) that the held-out share must exceed for each document of `hashes` [D] to be held out."""
    return uniform(key("held-out documents"), fold(0, hashes))


def in_range(hashes: NDArray[np.uint64], document_range: tuple[float, float]) -> NDArray[np.bool_]:
    """[D] which documents of `hashes` [D] belong to a half-open range of [0, 1]; independent of the held-out choice."""
    # A separate key: with the numbers of the held-out choice, a range from 0 would lose all held-out documents.
    place = uniform(key("share of the documents"), fold(0, hashes))
    return (place >= document_range[0]) & (place < document_range[1])


def documents_of(
    tokens: NDArray[Any], sentence_counts: Sequence[int], lengths: NDArray[np.int64], hashes: Sequence[int]
) -> Documents:
    """Documents from ids [T], sentence counts by document, sentence `lengths` [S] in tokens, and document hashes.

    Sentences without tokens and documents without sentences are dropped, as in the originals; sentences of more than
    `LONGEST_SENTENCE` tokens are split.
    """
    owner = np.repeat(np.arange(len(sentence_counts)), sentence_counts)
    pieces = -(-lengths // LONGEST_SENTENCE)
    last = lengths - (pieces - 1) * LONGEST_SENTENCE
    split = np.full(int(pieces.sum()), LONGEST_SENTENCE, np.uint16)
    split[np.cumsum(pieces)[pieces > 0] - 1] = last[pieces > 0]
    # An empty sentence has no piece, so a document of empty sentences has none and is dropped.
    per_document = np.bincount(np.repeat(owner, pieces), minlength=len(sentence_counts))
    kept = per_document > 0
    firsts = np.concatenate([[0], np.cumsum(per_document[kept])]).astype(np.uint64)
    return Documents(tokens, split, firsts, np.array(hashes, np.uint64)[kept])


def subset(documents: Documents, kept: NDArray[np.bool_]) -> Documents:
    """The documents selected by the mask `kept` [D], with their tokens."""
    bounds = documents.documents.astype(np.int64)
    counts = bounds[1:] - bounds[:-1]
    of_sentence = np.repeat(kept, counts)
    of_token = np.repeat(of_sentence, documents.sentences)
    firsts = np.concatenate([[0], np.cumsum(counts[kept])]).astype(np.uint64)
    return Documents(documents.tokens[of_token], documents.sentences[of_sentence], firsts, documents.hashes[kept])


def cut_last_tenth(documents: Documents) -> tuple[Documents, Documents]:
    """Split the only document of `documents`, of at least two sentences, into its first nine tenths and the rest."""
    sentences = len(documents.sentences)
    kept = sentences - max(1, sentences // 10)
    tokens = int(documents.sentences[:kept].sum(dtype=np.int64))

    def part(of_sentences: slice, of_tokens: slice) -> Documents:
        lengths = documents.sentences[of_sentences]
        firsts = np.array([0, len(lengths)], np.uint64)
        return Documents(documents.tokens[of_tokens], lengths, firsts, documents.hashes)

    return part(slice(kept), slice(tokens)), part(slice(kept, None), slice(tokens, None))
