"""Measures how many held-out sentences also occur in the training text.

Duplicate and near-duplicate documents are already removed, and a document is held out as a unit; what remains are
sentences and paragraphs that two documents share. A held-out sentence counts as found if 13 consecutive words of it,
or 26 characters of a script without spaces, occur in the training text, as in the corpus stage's search for evaluation
texts. Here the tokens are compared (`overlap_units`), so the text is not read again; numbers must match exactly, and so
must case if the vocabulary is cased.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import bits, key
from bertwright.corpus.ngrams import RUN, HashSet, run_name, runs
from bertwright.examples.overlap_units import Units, units_of
from bertwright.examples.store import Split, map_file

SAMPLE = 2000
"""Maximum number of held-out sentences to search for."""
_BLOCK = 2**17
_OVERLAP = 16 * RUN
"""Tokens that consecutive blocks of training text share, so that no run is cut: 16 pieces per word."""


def heldout_contamination(
    store: Path, vocabulary: Sequence[str], text: Iterable[NDArray[Any]] | None = None
) -> dict[str, Any]:
    """Search the training text for a sample of held-out sentences of at least 13 words, or 26 characters.

    Returns the number of `sentences`, the number `found`, their `share`, and the length of a `run`. `store` is the
    folder of the token store, `vocabulary` the entries by id. `text`, arrays [T] of ids, is searched instead of the
    store's own training text.
    """
    units = units_of(vocabulary, _tokens(store, "heldout"))
    sentences = [
        runs(hashes, units.run)
        for ids in _heldout_sentences(store, units)
        if len(hashes := units.hashes(ids)) >= units.run
    ]  # fmt: skip
    hash_set = HashSet(np.concatenate([np.zeros(0, np.uint64), *sentences]))
    # Collects only the hits, so that memory grows with the sample, not with the text.
    hits_in_text = set[int]()
    if sentences:
        for ids in training_text(store) if text is None else text:
            hits_in_text.update(hash_set.intersection(runs(units.hashes(ids), units.run)).tolist())
    hits = sum(not hits_in_text.isdisjoint(sentence.tolist()) for sentence in sentences)
    share = hits / max(1, len(sentences))
    return {"sentences": len(sentences), "found": hits, "share": share, "run": run_name(spaced=units.spaced)}


def training_text(store: Path) -> Iterator[NDArray[Any]]:
    """Yield the ids of a store's training text, in blocks [T] that overlap so that no run is cut."""
    tokens = _tokens(store, "train")
    for at in range(0, len(tokens), _BLOCK):
        yield tokens[at : at + _BLOCK + _OVERLAP]


def _heldout_sentences(store: Path, units: Units) -> Iterator[NDArray[Any]]:
    """Yield the ids of sampled sentences that may be as long as a run."""
    lengths = map_file(store / "heldout.sentences", "<u2").astype(np.int64)
    tokens = _tokens(store, "heldout")
    long = np.flatnonzero(units.most(tokens, lengths) >= units.run)
    # Sampled by a hash of their index: the first ones would all come from a few documents.
    drawn = np.sort(long[np.argsort(bits(key("sample of held-out sentences"), long), kind="stable")[:SAMPLE]])
    stops = np.cumsum(lengths)
    for sentence in drawn.tolist():
        yield tokens[stops[sentence] - lengths[sentence] : stops[sentence]]


def _tokens(store: Path, split: Split) -> NDArray[Any]:
    return map_file(store / f"{split}.tokens", json.loads((store / f"{split}.json").read_text())["dtype"])
