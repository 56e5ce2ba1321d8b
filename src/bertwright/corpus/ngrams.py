"""Runs of words as numbers: what near-copies and leaks are found by.

A word is what stands between spaces, without case, without punctuation and symbols, and with 0 for every number, as
datatrove compares texts: those of one template that differ in numbers alone are the same here. In languages that are
written without spaces every character is taken for half a word.
"""

from __future__ import annotations

import unicodedata

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import bits
from bertwright.corpus.words import pieces

Hashes = NDArray[np.uint64]
# Odd, so that it has an inverse modulo 2**64: a run is a difference of sums, with its power taken out again.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_INVERSE = np.uint64(pow(int(_FACTOR), -1, 2**64))
_UNKNOWN, _LETTER, _DIGIT, _SPACE, _MARK = range(5)
_TABLED = 0x20000
"""Code points whose kind is looked up; above there are ideographs."""
_kinds = np.full(_TABLED + 1, _UNKNOWN, np.uint8)
"""The kind of each character met so far: asking for all takes as long as the runs of 2 MB of text."""
_kinds[_TABLED] = _LETTER


def grams(text: str, n: int, *, spaced: bool = True) -> Hashes:
    """[N] the hash of every `n` words in a row; of all words where there are fewer, of none where there are none."""
    return runs(words(text, spaced=spaced)[0], n if spaced else 2 * n)


def words(text: str, *, spaced: bool = True) -> tuple[Hashes, NDArray[np.int64]]:
    """[W] a hash of each word of the text (of each character where it is not `spaced`), and [W] its line, from 0."""
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
    """[N - n + 1] a hash of every `n` of N numbers in a row; of all N where there are fewer, of none where N is 0."""
    width = min(n, len(hashes))
    if width == 0:
        return _NONE
    sums = np.concatenate([_ZERO, np.cumsum(hashes * np.cumprod(np.full(len(hashes), _FACTOR)))])
    total = (sums[width:] - sums[:-width]) * np.cumprod(np.full(len(sums) - width, _INVERSE))
    # Minima and leading bits are taken of these, and a polynomial does not spread evenly over them.
    mixed: Hashes = bits(width, total)
    return mixed


_NONE: Hashes = np.zeros(0, np.uint64)
_ZERO: Hashes = np.zeros(1, np.uint64)


def _kinds_of(points: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """[C] what each character is; `points` [C] are at most `_TABLED`."""
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
