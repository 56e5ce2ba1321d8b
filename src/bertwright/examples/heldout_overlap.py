"""Measures how many held-out sentences also occur in the training text.

Duplicate and near-duplicate documents are already removed, and a document is held out as a unit; what remains are
sentences and paragraphs that two documents share. A held-out sentence counts as found if 13 consecutive words of it,
or 26 characters of a script without spaces, occur in the training text, as in the corpus stage's search for evaluation
texts. Here the tokens are compared, so the text is not read again; numbers must match exactly, and so must case if the
vocabulary is cased. Imported data does not name its language, so the letters of the held-out text decide whether words
or characters are counted.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import bits, key
from bertwright.corpus.ngrams import RUN, Hashes, HashSet, run_length, run_name, runs
from bertwright.corpus.words import Kind, are, code_points, kinds_of
from bertwright.examples.frequencies import token_counts
from bertwright.examples.store import Split, map_file
from bertwright.vocab.entries import CONTINUATION, SPECIALS


class Units(Protocol):
    """The units of a run."""

    spaced: bool
    run: int
    """Units in a run."""

    def hashes(self, ids: NDArray[Any]) -> Hashes:
        """[U] the hash of each unit of the tokens [T], without punctuation."""

    def most(self, tokens: NDArray[Any], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """[S] at most how many units each sentence has, given the `lengths` [S] in tokens of consecutive sentences."""


def units_of(vocabulary: Sequence[str], tokens: NDArray[Any]) -> Units:
    """The units for a text of these `tokens` [T]; `vocabulary` has the entries by id."""
    texts = ["" if entry in SPECIALS else entry.removeprefix(CONTINUATION) for entry in vocabulary]
    kinds, owners = kinds_of(code_points("".join(texts))), np.repeat(np.arange(len(texts)), [*map(len, texts)])
    counts = token_counts(tokens, len(texts))[owners]
    unspaced = int(counts[are(kinds, Kind.IN_TWOS) | are(kinds, Kind.IN_FOURS)].sum())
    return Characters(vocabulary) if unspaced > int(counts[are(kinds, Kind.LETTER)].sum()) else Words(vocabulary)


class Words:
    """A word is compared by its pieces."""

    spaced = True
    run = run_length(spaced=True)

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._pieces = bits(key("pieces"), np.arange(len(vocabulary)))
        self._pieces[[not any(map(str.isalnum, entry)) for entry in vocabulary]] = 0  # punctuation is not a word
        self._begins = np.array([not entry.startswith(CONTINUATION) for entry in vocabulary])

    def hashes(self, ids: NDArray[Any]) -> Hashes:
        """[U] the hash of each word of the tokens [T], without punctuation."""
        starts = np.flatnonzero(self._begins[ids])
        words = np.add.reduceat(self._pieces[ids], starts) if len(starts) else self._pieces[:0]
        # A comma between two words must not break a run.
        without_marks: Hashes = words[words != 0]
        return without_marks

    def most(self, tokens: NDArray[Any], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """[S] the tokens of each sentence, of which a word has at least one."""
        return lengths


class Characters:
    """Characters are compared however the vocabulary cuts them into pieces."""

    spaced = False
    run = run_length(spaced=False)

    def __init__(self, vocabulary: Sequence[str]) -> None:
        # A special token, such as [UNK], is a character of its own from the planes of private use.
        texts = [
            chr(0xF0000 + SPECIALS.index(entry))
            if entry in SPECIALS
            else "".join(c for c in entry.removeprefix(CONTINUATION) if unicodedata.category(c)[0] not in "PSCZ")
            for entry in vocabulary
        ]
        self._counts = np.array([*map(len, texts)], np.uint16)
        self._starts = np.cumsum(self._counts, dtype=np.int64) - self._counts
        self._characters = bits(key("characters"), code_points("".join(texts)).astype(np.uint64))

    def hashes(self, ids: NDArray[Any]) -> Hashes:
        """[U] the hash of each character of the tokens [T], without punctuation."""
        counts = self._counts[ids].astype(np.int64)
        before = np.cumsum(counts) - counts
        places = np.repeat(self._starts[ids] - before, counts) + np.arange(counts.sum())
        characters: Hashes = self._characters[places]
        return characters

    def most(self, tokens: NDArray[Any], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """[S] the characters of each sentence."""
        most = np.zeros(len(lengths), np.int64)
        filled = np.flatnonzero(lengths)
        if len(filled):
            starts = (np.cumsum(lengths) - lengths)[filled]
            most[filled] = np.add.reduceat(self._counts[tokens], starts, dtype=np.int64)
        return most


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
