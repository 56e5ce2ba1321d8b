"""Hashes of runs of words (n-grams), used to find near-duplicates and leaked evaluation text.

Words are separated by spaces; case, punctuation and symbols are removed and every number becomes 0, as in datatrove's
comparison of texts: texts of one template that differ only in numbers are equal. In languages written without spaces
every character counts as half a word.
"""

from __future__ import annotations

import unicodedata

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import bits
from bertwright.corpus.words import pieces

Hashes = NDArray[np.uint64]
# Odd, so that it has an inverse modulo 2**64: the hash of a run is a difference of prefix sums, divided by a power.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_INVERSE = np.uint64(pow(int(_FACTOR), -1, 2**64))
_UNKNOWN, _LETTER, _DIGIT, _SPACE, _MARK = range(5)
_TABLED = 0x20000
"""Number of code points whose kind is looked up in a table; those above are ideographs."""
_kinds = np.full(_TABLED + 1, _UNKNOWN, np.uint8)
"""The kind of each character seen so far: computing all of them takes as long as the runs of 2 MB of text."""
_kinds[_TABLED] = _LETTER


def grams(text: str, n: int, *, spaced: bool = True) -> Hashes:
    """[N] the hash of every `n` consecutive words; one hash of all words if there are fewer, none if there are none."""
    return runs(words(text, spaced=spaced)[0], n if spaced else 2 * n)


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
    points = np.frombuffer(text.casefold().encode("utf-32-le", "surrogatepass"), "<u4")
    kinds = _kinds_of(np.minimum(points, _TABLED))
    points, kinds = points[kinds != _MARK], kinds[kinds != _MARK]
    digits = kinds == _DIGIT
    number = np.ones(len(points), bool)
    number[1:] = ~(digits[1:] & digits[:-1])
    points = np.where(digits, ord("0"), points)[number]
    inside = (kinds != _SPACE)[number]
    begins = inside.copy()
    if spaced:
        begins[1:] &= ~inside[:-1]
    lines = np.cumsum(points == ord("\n"))
    letters = points[inside].astype(np.uint64)
    firsts = np.flatnonzero(begins[inside])
    if not len(firsts):
        return _NONE, np.zeros(0, np.int64)
    lengths = np.diff(firsts, append=len(letters))
    place = np.arange(len(letters)) - np.repeat(firsts, lengths)
    powers = np.cumprod(np.full(lengths.max(), _FACTOR))
    return np.add.reduceat(letters * powers[place], firsts), lines[begins]


def runs(hashes: Hashes, n: int) -> Hashes:
    """[N - n + 1] the hash of every `n` consecutive of N numbers; one hash of all N where N < n, empty where N is 0."""
    width = min(n, len(hashes))
    if width == 0:
        return _NONE
    sums = np.concatenate([_ZERO, np.cumsum(hashes * np.cumprod(np.full(len(hashes), _FACTOR)))])
    total = (sums[width:] - sums[:-width]) * np.cumprod(np.full(len(sums) - width, _INVERSE))
    # Mixed, because callers use minima and leading bits, over which the values of a polynomial are not uniform.
    mixed: Hashes = bits(width, total)
    return mixed


_NONE: Hashes = np.zeros(0, np.uint64)
_ZERO: Hashes = np.zeros(1, np.uint64)


def _kinds_of(points: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """[C] the kind of each character; `points` [C] are at most `_TABLED`."""
    kinds = _kinds[points]
    if not kinds.all():
        for point in np.unique(points[kinds == _UNKNOWN]).tolist():
            _kinds[point] = _kind(chr(point))
        kinds = _kinds[points]
    return kinds


def _kind(character: str) -> int:
    if character.isspace():
        return _SPACE
    category = unicodedata.category(character)
    if category == "Nd":
        return _DIGIT
    return _MARK if category[0] in "PSC" else _LETTER
