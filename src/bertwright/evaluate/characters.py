"""Bits a character: a masked-token loss by the text that the masked tokens stand for, however it is cut into entries.

White space is left out: no entry holds it, and where it stands follows from the script. It is no rate of compression,
for the tokens beside the masked ones are given. Losses of different vocabularies come nearer to each other by it and
are not made comparable: an entry that is half a word has the other half beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bertwright.vocab.normalization import CONTINUATION, SPECIALS


def entry_lengths(vocabulary: Sequence[str]) -> NDArray[np.int64]:
    """[V] characters of text that each entry stands for: without ##; of [UNK] and its like none."""
    # What [UNK] hides is not known. With none the bits of a text with many of them come out too high, never too low.
    texts = ("" if entry in SPECIALS else entry.removeprefix(CONTINUATION) for entry in vocabulary)
    return np.fromiter(map(len, texts), np.int64, len(vocabulary))


def bits_per_character(loss: float | None, labels: NDArray[np.int64], lengths: NDArray[np.int64]) -> float | None:
    """Bits for each character of the masked tokens `labels` [P], given their mean loss in nats and `entry_lengths` [V];
    None where there is no loss, or no character."""
    characters = int(lengths[labels].sum())
    return None if loss is None or not characters else loss * len(labels) / math.log(2) / characters
