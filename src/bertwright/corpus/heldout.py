"""Which documents are held out of training: a hash of their text decides, so a new dump keeps the choice."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import fold, key, uniform


def text_hash(sentences: Sequence[str]) -> int:
    """The 64-bit hash of a document's text: BLAKE2b over its sentences joined by newlines."""
    return int.from_bytes(hashlib.blake2b("\n".join(sentences).encode(), digest_size=8).digest(), "little")


def is_heldout(hashes: NDArray[np.uint64], share: float) -> NDArray[np.bool_]:
    """[D] whether each document is held out; depends only on its hash, `hashes` [D], so a new dump keeps the choice."""
    return heldout_place(hashes) < share


def heldout_place(hashes: NDArray[np.uint64]) -> NDArray[np.float64]:
    """[D] the value in [0, 1) that the held-out share must exceed for each document of `hashes` [D] to be held out."""
    return uniform(key("held-out documents"), fold(0, hashes))
