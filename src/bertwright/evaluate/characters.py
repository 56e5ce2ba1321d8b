"""Bits per character: a masked-token loss relative to the text of the masked tokens, however it is tokenized.

White space is not counted: no entry contains it, and its position follows from the script. This is not a compression
rate, because the tokens around the masked ones are given. It brings losses of different vocabularies closer together
but does not make them comparable: an entry that is half a word has the other half next to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bertwright.vocab.normalization import CONTINUATION, SPECIALS


def entry_lengths(vocabulary: Sequence[str]) -> NDArray[np.int64]:
    """[V] characters of text in each entry, without ##; 0 for special entries such as [UNK]."""
    # The text behind [UNK] is not known. Counting none makes the bits of a text with many of them too high, never too
    # low.
    texts = ("" if entry in SPECIALS else entry.removeprefix(CONTINUATION) for entry in vocabulary)
    return np.fromiter(map(len, texts), np.int64, len(vocabulary))


def bits_per_character(loss: float | None, labels: NDArray[np.int64], lengths: NDArray[np.int64]) -> float | None:
    """Bits per character of the masked tokens `labels` [P], given their mean loss in nats and `entry_lengths` [V]; None
    if there is no loss or no character."""
    characters = int(lengths[labels].sum())
    return None if loss is None or not characters else loss * len(labels) / math.log(2) / characters
