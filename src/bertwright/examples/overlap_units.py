"""What the runs of the held-out search consist of: words, or characters where no spaces separate words.

Imported data does not name its language, so the letters of the held-out text decide.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import bits, key
from bertwright.corpus.ngrams import Hashes, run_length
from bertwright.corpus.words import Kind, are, code_points, kinds_of
from bertwright.examples.frequencies import token_counts
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
