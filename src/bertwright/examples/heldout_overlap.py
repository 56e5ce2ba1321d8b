"""Measures how many held-out sentences also occur in the training text.

Duplicate and near-duplicate documents are already removed, and a document is held out as a unit; what remains are
sentences and paragraphs that two documents share. A held-out sentence counts as found if 13 consecutive words of it
occur in the training text, as in the corpus stage's search for evaluation texts. Here a word is compared by its pieces,
so the text is not read again; numbers must match exactly, and so must case if the vocabulary is cased.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import bits, key
from bertwright.corpus.contamination import RUN, HashSet
from bertwright.corpus.ngrams import Hashes, runs
from bertwright.examples.store import Split, map_file
from bertwright.vocab.normalization import CONTINUATION

SAMPLE = 2000
"""Maximum number of held-out sentences to search for."""
_BLOCK = 2**17
_OVERLAP = 16 * RUN
"""Tokens that consecutive blocks of training text share, so that no run is cut: 16 pieces per word."""


def heldout_contamination(
    store: Path, vocabulary: Sequence[str], text: Iterable[NDArray[Any]] | None = None
) -> dict[str, Any]:
    """Search the training text for a sample of held-out sentences of at least 13 words.

    Returns the number of `sentences`, the number `found`, and their `share`. `store` is the folder of the token store,
    `vocabulary` the entries by id. `text`, arrays [T] of ids, is searched instead of the store's own training text.
    """
    pieces = bits(key("pieces"), np.arange(len(vocabulary)))
    pieces[[not any(map(str.isalnum, entry)) for entry in vocabulary]] = 0  # punctuation alone is not a word
    begins = np.array([not entry.startswith(CONTINUATION) for entry in vocabulary])
    sentences = [
        runs(hashes, RUN)
        for ids in _heldout_sentences(store)
        if len(hashes := _words(ids, pieces, begins)) >= RUN
    ]  # fmt: skip
    hash_set = HashSet(np.concatenate([np.zeros(0, np.uint64), *sentences]))
    # Collects only the hits, so that memory grows with the sample, not with the text.
    hits_in_text = set[int]()
    if sentences:
        for ids in training_text(store) if text is None else text:
            hits_in_text.update(hash_set.intersection(runs(_words(ids, pieces, begins), RUN)).tolist())
    hits = sum(not hits_in_text.isdisjoint(sentence.tolist()) for sentence in sentences)
    return {"sentences": len(sentences), "found": hits, "share": hits / max(1, len(sentences))}


def training_text(store: Path) -> Iterator[NDArray[Any]]:
    """Yield the ids of a store's training text, in blocks [T] that overlap so that no run is cut."""
    tokens = _tokens(store, "train")
    for at in range(0, len(tokens), _BLOCK):
        yield tokens[at : at + _BLOCK + _OVERLAP]


def _heldout_sentences(store: Path) -> Iterator[NDArray[Any]]:
    """Yield the ids of sampled sentences that have at least as many tokens as a run has words."""
    lengths = map_file(store / "heldout.sentences", "<u2").astype(np.int64)
    tokens = _tokens(store, "heldout")
    long = np.flatnonzero(lengths >= RUN)
    # Sampled by a hash of their index: the first ones would all come from a few documents.
    drawn = np.sort(long[np.argsort(bits(key("sample of held-out sentences"), long), kind="stable")[:SAMPLE]])
    stops = np.cumsum(lengths)
    for sentence in drawn.tolist():
        yield tokens[stops[sentence] - lengths[sentence] : stops[sentence]]


def _words(ids: NDArray[Any], pieces: Hashes, begins: NDArray[np.bool_]) -> Hashes:
    """A hash of each word, without punctuation."""
    starts = np.flatnonzero(begins[ids])
    words = np.add.reduceat(pieces[ids], starts) if len(starts) else pieces[:0]
    # A comma between two words must not break a run.
    without_marks: Hashes = words[words != 0]
    return without_marks


def _tokens(store: Path, split: Split) -> NDArray[Any]:
    return map_file(store / f"{split}.tokens", json.loads((store / f"{split}.json").read_text())["dtype"])
