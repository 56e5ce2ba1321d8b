"""Hashes of runs of words (n-grams), which find near-duplicates and leaked evaluation text, and sets of such hashes.

Words are separated by spaces; case, punctuation and symbols are removed and every number becomes 0, as in datatrove's
comparison of texts: texts of one template that differ only in numbers are equal. In languages written without spaces
every character counts as half a word.
"""

from __future__ import annotations

import unicodedata

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import bits
from bertwright.corpus.words import code_points, pieces

Hashes = NDArray[np.uint64]
RUN = 13
"""Words in a run that two texts share only if one of them copies the other."""
# Odd, so that it has an inverse modulo 2**64: the hash of a run is a difference of prefix sums, divided by a power.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_INVERSE = np.uint64(pow(int(_FACTOR), -1, 2**64))
_SPACE, _LINE_END, _DIGIT = map(ord, " \n0")
# Code points that no letter has.
_UNKNOWN, _MARK, _EXPANDS = range(3)
_IDEOGRAPHS = 0x20000
"""Code points from here on are ideographs."""
_written = np.full(0x110000, _UNKNOWN, np.uint32)
"""How each character seen so far is compared: the code point of its case-folded form, of a zero for a digit and of a
space for white space other than a line feed; `_MARK` if it is removed; `_EXPANDS` if its case-folded form has several
characters. Computing all of them takes as long as the runs of 2 MB of text.
"""


def grams(text: str, n: int, *, spaced: bool = True) -> Hashes:
    """[N] the hash of every `n` consecutive words; one hash of all words if there are fewer, none if there are none."""
    return runs(words(text, spaced=spaced)[0], n if spaced else 2 * n)


def run_length(*, spaced: bool) -> int:
    """Words in a run, or characters unless `spaced`."""
    # Every character counts as half a word where no spaces separate words.
    return RUN if spaced else 2 * RUN


def run_name(*, spaced: bool) -> str:
    """The length of a run as reports name it."""
    return f"{run_length(spaced=spaced)} {'words' if spaced else 'characters'}"


def words(text: str, *, spaced: bool = True) -> tuple[Hashes, NDArray[np.int64]]:
    """[W] the hash of each word of the text (of each character unless `spaced`), and [W] its line number from 0."""
    hashes, lines, line = list[Hashes](), list[NDArray[np.int64]](), 0
    for piece in pieces(text):
        of_piece, numbers = _words(piece, spaced)
        hashes.append(of_piece)
        lines.append(numbers + line)
        line += piece.count("\n")
    return np.concatenate(hashes), np.concatenate(lines)


def _words(text: str, spaced: bool) -> tuple[Hashes, NDArray[np.int64]]:
    points = _normalise(text)
    points = points[points != _MARK]
    digits = points == _DIGIT
    number = np.ones(len(points), bool)
    number[1:] = ~(digits[1:] & digits[:-1])
    points = points[number]
    inside = points > _SPACE
    begins = inside.copy()
    if spaced:
        begins[1:] &= ~inside[:-1]
    starts = np.flatnonzero(begins)
    lines = np.searchsorted(np.flatnonzero(points == _LINE_END), starts)
    letters = points[inside].astype(np.uint64)
    firsts = np.flatnonzero(begins[inside])
    if not len(firsts):
        return _NONE, lines
    # A word is hashed as a polynomial of its letters. The powers run on over the words, and are divided out per word.
    hashes = np.add.reduceat(letters * _powers(_FACTOR, len(letters)), firsts)
    return hashes * (_powers(_INVERSE, len(letters)) * _FACTOR)[firsts], lines


def runs(hashes: Hashes, n: int) -> Hashes:
    """[N - n + 1] the hash of every `n` consecutive of N numbers; one hash of all N where N < n, empty where N is 0."""
    width = min(n, len(hashes))
    if width == 0:
        return _NONE
    sums = np.concatenate([_ZERO, np.cumsum(hashes * _powers(_FACTOR, len(hashes)))])
    total = (sums[width:] - sums[:-width]) * _powers(_INVERSE, len(sums) - width)
    # Mixed, because callers use minima and leading bits, over which the values of a polynomial are not uniform.
    mixed: Hashes = bits(width, total)
    return mixed


_NONE: Hashes = np.zeros(0, np.uint64)
_ZERO: Hashes = np.zeros(1, np.uint64)


def _powers(base: np.uint64, count: int) -> Hashes:
    """[count] the powers of `base`, from the first on."""
    return np.cumprod(np.full(count, base, np.uint64), dtype=np.uint64)


def _normalise(text: str) -> NDArray[np.uint32]:
    """[C] the characters of the case-folded text, as in `_written`."""
    points = _look_up(code_points(text))
    # Folding by the table takes a fifth of the time of `casefold`.
    return _look_up(code_points(text.casefold())) if (points == _EXPANDS).any() else points


def _look_up(codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    points = _written.take(codes)
    if not points.all():
        for code in set(codes[points == _UNKNOWN].tolist()):
            _written[code] = _written_as(chr(code))
        points = _written.take(codes)
    return points


def _written_as(character: str) -> int:
    folded = character.casefold()
    if len(folded) > 1:
        return _EXPANDS
    if ord(folded) >= _IDEOGRAPHS or folded == "\n":
        return ord(folded)
    if folded.isspace():
        return _SPACE
    category = unicodedata.category(folded)
    if category == "Nd":
        return _DIGIT
    return _MARK if category[0] in "PSC" else ord(folded)


_TABLE_BITS = 22


class HashSet:
    """The set of hashes [N] to search texts for."""

    def __init__(self, hashes: Hashes) -> None:
        self.hashes = np.unique(hashes)
        self._table = np.zeros(2**_TABLE_BITS, bool)  # filters out most hashes that are not in the set
        self._table[self._places(self.hashes)] = True

    def intersection(self, hashes: Hashes) -> Hashes:
        """[F] the hashes of the set that are among `hashes` [N], sorted and unique."""
        likely = hashes[self._table[self._places(hashes)]]
        places = np.searchsorted(self.hashes, likely)
        # `searchsorted` returns the length for a value above the last one.
        return np.unique(likely[self.hashes[np.minimum(places, len(self.hashes) - 1)] == likely])

    @staticmethod
    def _places(hashes: Hashes) -> Hashes:
        return hashes >> np.uint64(64 - _TABLE_BITS)
