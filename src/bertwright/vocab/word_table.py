"""Joins sentences into one byte string, locates its words, and numbers the distinct words by vectorised look-up.

Words are separated by spaces, and common punctuation marks are words of their own. BERT separates these marks anyway,
and NFC never combines one with a neighbouring character; splitting at them leaves far fewer distinct words.

A Python dictionary costs a string, its hash and several memory accesses per word; here a word is one or a few machine
words of eight bytes, and the latencies of many memory accesses overlap. The hash only selects a slot: whether two words
are equal is decided by all their bytes.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ASCII_APART = "!\"#$%&'()*+,-./:;?@[\\]^_`{|}~"
APART = "”»…„«“’"
_KINDS = bytes(0 if chr(byte) in " \n" else 2 if chr(byte) in ASCII_APART else 1 for byte in range(256))
# Words are read eight bytes at a time, so the last read may extend beyond the end of its word.
PADDING = 8
_FREE = -1
_NOWHERE = np.zeros(0, np.int64)
_FIRST_SLOTS = 1 << 12
_SLOTS_PER_WORD = 4  # minimum; nearly all words are then found at the first or second slot
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 by the golden ratio (Knuth, The Art of Computer Programming 3, §6.4)
_HALF = np.uint64(32)
_FIRST_BYTES = np.array([(1 << 8 * kept) - 1 for kept in range(9)], np.uint64)


def text_of(sentences: Sequence[str]) -> bytes:
    """The sentences as one text, one per line, with surrounding spaces for `pretokenize` and `WordTable`."""
    text = "\n".join([*sentences, ""])
    # A line feed within a sentence would count as its end.
    if text.count("\n") > len(sentences):
        return text_of([sentence.replace("\n", " ") for sentence in sentences])
    for mark in APART:
        text = text.replace(mark, f" {mark} ")
    return f" {text}{' ' * PADDING}".encode()


def pretokenize(text: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The start [W] and end [W] of the W words of a `text_of`, as byte offsets."""
    kinds = np.frombuffer(text.translate(_KINDS), np.int8)
    edges, alone = np.diff(kinds & 1), kinds == 2
    return np.flatnonzero((edges == 1) | alone[1:]) + 1, np.flatnonzero((edges == -1) | alone[:-1]) + 1


def lines_of(text: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> str:
    """The words `text[start:end]` for `starts` and `ends` [W], each followed by "\\n"."""
    letters = np.frombuffer(text, np.uint8)[runs(starts, ends - starts + 1)]
    letters[np.cumsum(ends - starts + 1) - 1] = ord("\n")
    return letters.tobytes().decode()


class WordTable:
    """A hash table of distinct words, numbered 0, 1, 2, ... in the order in which they were first seen."""

    def __init__(self) -> None:
        self._slots = np.full(_FIRST_SLOTS, _FREE, np.int32)
        self._hashes, self._chunks = array("Q"), array("Q")
        self._lengths, self._begins = array("q"), array("q")

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def size(self) -> int:
        """Total bytes of its words, each padded to a multiple of eight."""
        return 8 * len(self._chunks)

    def numbers(
        self, text: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """[W] the number of each word `text[start:end]`, and [N] the indices at which new words first occur.

        `starts` and `ends` are [W], in bytes. No word may be empty, and `text` must have `PADDING` bytes of any value
        after the last one.
        """
        words, new = _packed(text, starts, ends - starts), [_NOWHERE]
        numbers = self._find(words, np.arange(len(starts)))
        while len(missing := np.flatnonzero(numbers == _FREE)):  # repeats only if two words have the same hash
            new.append(missing[np.sort(np.unique(words.hashes[missing], return_index=True)[1])])
            self._add(words, new[-1])
            numbers[missing] = self._find(words, missing)
        return numbers, np.concatenate(new)

    def _find(self, words: _Words, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        numbers = np.empty(len(tokens), np.int64)
        pending, slots = np.arange(len(tokens)), self._first_slots(words.hashes[tokens])
        while len(pending):
            numbers[pending] = candidates = self._slots[slots]
            other = np.flatnonzero(candidates != _FREE)
            other = other[~self._same(words, tokens[pending[other]], candidates[other])]
            pending, slots = pending[other], self._next(slots[other])
        return numbers

    def _same(self, words: _Words, tokens: NDArray[np.int64], numbers: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether each of the words `tokens` of the text equals the stored word in `numbers`."""
        # Lengths are compared first: with zero padding alone, "a" and "a\0" would be equal.
        same: NDArray[np.bool_] = np.frombuffer(self._lengths, np.int64)[numbers] == words.lengths[tokens]
        tokens, numbers = tokens[same], numbers[same]
        sizes = words.sizes[tokens]
        stored = np.frombuffer(self._chunks, np.uint64)[runs(np.frombuffer(self._begins, np.int64)[numbers], sizes)]
        equal = stored == words.chunks[runs(words.begins[tokens], sizes)]
        same[same] = np.logical_and.reduceat(equal, np.cumsum(sizes) - sizes)
        return same

    def _add(self, words: _Words, tokens: NDArray[np.int64]) -> None:
        """Assign the next numbers to these words of the text, which are all different and new."""
        sizes = words.sizes[tokens]
        begins = len(self._chunks) + np.cumsum(sizes) - sizes
        numbers = np.arange(len(self), len(self) + len(tokens), dtype=np.int32)
        self._chunks.frombytes(words.chunks[runs(words.begins[tokens], sizes)].tobytes())
        self._begins.frombytes(begins.tobytes())
        self._lengths.frombytes(words.lengths[tokens].tobytes())
        self._hashes.frombytes(words.hashes[tokens].tobytes())
        if _SLOTS_PER_WORD * len(self) > len(self._slots):
            # At least double the slots: placing all words again is then amortised over the words added since.
            self._slots = np.full(1 << (2 * _SLOTS_PER_WORD * len(self)).bit_length(), _FREE, np.int32)
            numbers = np.arange(len(self), dtype=np.int32)
        self._place(numbers)

    def _place(self, numbers: NDArray[np.int32]) -> None:
        slots = self._first_slots(np.frombuffer(self._hashes, np.uint64)[numbers])
        while len(numbers):
            free = self._slots[slots] == _FREE
            self._slots[slots[free]] = numbers[free]
            unplaced = self._slots[slots] != numbers
            numbers, slots = numbers[unplaced], self._next(slots[unplaced])

    def _first_slots(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        return (hashes >> np.uint64(65 - len(self._slots).bit_length())).astype(np.int64)

    def _next(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        return slots + 1 & len(self._slots) - 1


class _Words(NamedTuple):
    """The words of a text as chunks of eight bytes, with the last chunk of each word padded with zeros."""

    lengths: NDArray[np.int64]
    chunks: NDArray[np.uint64]
    begins: NDArray[np.int64]
    sizes: NDArray[np.int64]
    hashes: NDArray[np.uint64]


def _packed(text: bytes, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> _Words:
    sizes = lengths + 7 >> 3
    ends = np.cumsum(sizes)
    begins = ends - sizes
    chunk_at = np.ndarray(len(text) - 7, "<u8", text, strides=(1,))
    chunks = chunk_at[8 * np.arange(sizes.sum()) + np.repeat(starts - 8 * begins, sizes)].astype(np.uint64, copy=False)
    # Clear the bytes after the end of the word in its last chunk.
    chunks[ends - 1] &= _FIRST_BYTES[lengths - 8 * (sizes - 1)]
    mixed = chunks * _GOLDEN
    hashes = np.add.reduceat(mixed ^ mixed >> _HALF, begins) * _GOLDEN
    return _Words(lengths, chunks, begins, sizes, hashes)


def runs(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """[T] the concatenated runs start, start + 1, ... for each of `starts` [N], with lengths `counts` [N]."""
    places: NDArray[np.int64] = np.arange(counts.sum())
    places += np.repeat(starts - (np.cumsum(counts) - counts), counts)
    return places
