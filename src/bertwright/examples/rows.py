"""Making rows of a plan, and the state of building them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertwright.examples.plans import ROW

SLOTS = 16
"""Counters of a chunk's random numbers; the document's own are those of chunk 0."""
SHORT, TARGET = 0, 1

Indices = NDArray[np.int64]
Keys = NDArray[np.uint64]
Chunk = tuple[Indices, NDArray[np.void]]
"""Which (pass, stretch) a row is of, and the rows."""


@dataclass
class PlanBuilder:
    """How far each (pass, stretch of sentences) has come, all at the same chunk number."""

    number: Indices
    """[W] which (pass, stretch), of all of them."""
    key: Keys
    """[W] of its random decisions."""
    own: Indices
    """[W] which stretch, of those of a pass."""
    at: Indices
    """[W] the sentence or token that comes next."""
    end: Indices
    """[W] the sentence or token after its last."""

    def unfinished(self) -> PlanBuilder:
        """Those that have not come to their end."""
        active = np.flatnonzero(self.at < self.end)
        return PlanBuilder(*(column[active] for column in vars(self).values()))


def rows(
    a: Indices, a_end: Indices, b: Indices, b_end: Indices, label: ArrayLike = 0, document_breaks: ArrayLike = 0
) -> NDArray[np.void]:
    """[R] `ROW` of the token ranges [a, a_end) and [b, b_end), bounds [R]; label and breaks [R], or one for all."""
    made = np.empty(len(a), ROW)
    most = np.iinfo(np.uint16).max
    made["a_start"], made["a_count"] = a, np.minimum(a_end - a, most)
    made["b_start"], made["b_count"] = b, np.minimum(b_end - b, most)
    made["label"], made["breaks"] = label, document_breaks
    return made
