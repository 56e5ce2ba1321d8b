"""How often each document would stand in the corpus by the weight of its source, drawn before anything is compared.

A document that is not drawn is compared with none, so it takes no other one's place.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import key, uniform
from bertwright.corpus.part import DOCUMENTS, is_written, read_array, write_array

COPIES = ".copies.npy"


@dataclass(frozen=True)
class DrawPart:
    """A part of a source of some weight."""

    part: Path
    weight: float
    seed: int


def draw_part(task: DrawPart) -> None:
    """Write how often each document stands, unless it is there: the whole part of the weight, and once more with the
    probability of the rest, by the hash of the text."""
    out = task.part.with_suffix(COPIES)
    if not is_written(out):
        hashes = read_array(task.part.with_suffix(DOCUMENTS))["high"]
        whole, rest = divmod(task.weight, 1)
        once_more = uniform(key("weight of the source", task.seed), hashes) < rest
        write_array(out, int(whole) + once_more.astype(np.uint8))


def copies(part: Path) -> NDArray[np.uint8]:
    """[documents] how often each of a part stands in the corpus, if nothing else drops it."""
    found: NDArray[np.uint8] = read_array(part.with_suffix(COPIES)).astype(np.uint8)
    return found
