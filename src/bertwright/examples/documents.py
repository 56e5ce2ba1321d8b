"""Tokenised documents: built from sentences, selected by the hash of their text, and split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import fold, key, uniform
from bertwright.examples.store import Documents, Store

LONGEST_SENTENCE = 65_535
"""Maximum number of tokens of a sentence in the store, which keeps lengths in 16 bits."""
_BLOCK = 1 << 20
"""Number of hashes compared with a range at a time."""


def in_range(hashes: NDArray[np.uint64], document_range: tuple[float, float]) -> NDArray[np.bool_]:
    """[D] which documents of `hashes` [D] belong to a half-open range of [0, 1]; independent of the held-out choice."""
    # A separate key: with the numbers of the held-out choice, a range from 0 would lose all held-out documents.
    place = uniform(key("share of the documents"), fold(0, hashes))
    return (place >= document_range[0]) & (place < document_range[1])


def members_of(hashes: NDArray[np.uint64], document_range: tuple[float, float]) -> NDArray[np.int64]:
    """[M] the indices of the documents of `hashes` [D] that belong to the range."""
    blocks = range(0, len(hashes), _BLOCK)
    found = [first + np.flatnonzero(in_range(hashes[first : first + _BLOCK], document_range)) for first in blocks]
    return np.concatenate([np.zeros(0, np.int64), *found])


class Inside(NamedTuple):
    """Where the first segments of R rows continue in other documents."""

    first: NDArray[np.int64]
    """[R] number of tokens up to the end of the document in which the segment begins."""
    starts: NDArray[np.int64]
    """[P] first token of each document that begins inside a segment, of one row after another."""
    sizes: NDArray[np.int64]
    """[P] number of its tokens inside."""


def documents_inside(
    store: Store, start: NDArray[np.int64], count: NDArray[np.int64], breaks: NDArray[np.int64]
) -> Inside:
    """The documents inside segments of `count` tokens from token `start` on, in which the next `breaks` documents of
    the plans begin (see `followed_by`), all [R] and above 0."""
    begun = _begun(store, start)
    after = begun if store.members is None else np.searchsorted(store.members, begun)
    last = np.cumsum(breaks) - 1
    inside = np.repeat(after - (last + 1 - breaks), breaks) + np.arange(breaks.sum())
    inside = inside if store.members is None else store.members[inside]
    starts = store.starts[inside].astype(np.int64)
    first, sizes = store.starts[begun].astype(np.int64) - start, store.starts[inside + 1].astype(np.int64) - starts
    # The last one continues only as far as the segment.
    sizes[last] += count - first - np.add.reduceat(sizes, last + 1 - breaks)
    return Inside(first, starts, sizes)


def followed_by(store: Store, start: NDArray[np.int64]) -> NDArray[np.int64]:
    """[R] how many documents of the plans begin after token `start` [R] of the store."""
    if store.members is None:
        return len(store.starts) - 1 - _begun(store, start)
    return len(store.members) - np.searchsorted(store.members, _begun(store, start))


def _begun(store: Store, start: NDArray[np.int64]) -> NDArray[np.int64]:
    """[R] how many documents begin at or before token `start` [R] of the store."""
    # Cast to the same dtype, or numpy would convert all starts to floats for each search: 17 ms and 52 MB for 512
    # sequences of a Wikipedia.
    return np.searchsorted(store.starts, start.astype(np.uint64), side="right")


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
    """The documents selected by the mask `kept` [D], with their tokens if `documents` has tokens."""
    bounds = documents.documents.astype(np.int64)
    counts = bounds[1:] - bounds[:-1]
    of_sentence = np.repeat(kept, counts)
    of_token = np.repeat(of_sentence, documents.sentences)
    firsts = np.concatenate([[0], np.cumsum(counts[kept])]).astype(np.uint64)
    tokens = documents.tokens[of_token] if len(documents.tokens) else documents.tokens
    return Documents(tokens, documents.sentences[of_sentence], firsts, documents.hashes[kept])


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
