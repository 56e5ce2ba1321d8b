"""Sentences as one text of bytes, and where its words lie: between spaces, and common punctuation marks apart.

BERT sets these marks apart anyway, and NFC makes no character of one of them and what stands beside it; without them
there are far fewer distinct words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bertwright.vocab.word_table import PADDING, runs

ASCII_APART = "!\"#$%&'()*+,-./:;?@[\\]^_`{|}~"
APART = "”»…„«“’"
_KINDS = bytes(0 if chr(byte) in " \n" else 2 if chr(byte) in ASCII_APART else 1 for byte in range(256))


def text_of(sentences: Sequence[str]) -> bytes:
    """The sentences as one text, one a line, with space around for `pretokenize` and `WordTable`."""
    text = "\n".join([*sentences, ""])
    if text.count("\n") > len(sentences):
        return text_of([sentence.replace("\n", " ") for sentence in sentences])
    for mark in APART:
        text = text.replace(mark, f" {mark} ")
    return f" {text}{' ' * PADDING}".encode()


def pretokenize(text: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the W words of a `text_of` start [W] and end [W], in bytes."""
    kinds = np.frombuffer(text.translate(_KINDS), np.int8)
    edges, alone = np.diff(kinds & 1), kinds == 2
    return np.flatnonzero((edges == 1) | alone[1:]) + 1, np.flatnonzero((edges == -1) | alone[:-1]) + 1


def lines_of(text: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> str:
    """The words `text[start:end]` of `starts` and `ends` [W], a "\\n" behind each."""
    letters = np.frombuffer(text, np.uint8)[runs(starts, ends - starts + 1)]
    letters[np.cumsum(ends - starts + 1) - 1] = ord("\n")
    return letters.tobytes().decode()
