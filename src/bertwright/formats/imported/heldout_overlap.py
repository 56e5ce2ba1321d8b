"""Tokenised documents made elsewhere that are held out here, token for token: they are not trained on.

They are found when all parts are there, because only then all held-out documents are known. Their rows are left out of
the plans, and in the store their tokens become [PAD].
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertwright.core.files import read_bytes, read_json
from bertwright.examples.instances import ends
from bertwright.examples.store import map_file
from bertwright.formats.sketch import Hashes, row_hashes

_AT_ONCE = 1 << 12
"""Held-out documents hashed together."""


@dataclass(frozen=True)
class Overlap:
    """The documents to leave out of a set, found by `find_overlap`."""

    parts: Path
    """Where the parts of the set's training split lie."""
    masks: dict[int, NDArray[np.bool_]]
    """[D] which documents of a part they are, for the parts that have some."""

    def __len__(self) -> int:
        return sum(int(mask.sum()) for mask in self.masks.values())

    def rows_without(self, number: int, rows: NDArray[np.void]) -> NDArray[np.void]:
        """Those of the rows, [R] `ROW`, of part `number` that take nothing from them."""
        if (mask := self.masks.get(number)) is None:
            return rows
        starts, before = _array(self.parts, number, "starts"), ends(mask)
        a, b = (np.searchsorted(starts, rows[name], side="right") - 1 for name in ("a_start", "b_start"))
        in_a = before[a + rows["breaks"] + 1] > before[a]
        in_b = (rows["b_count"] > 0) & mask[np.minimum(b, len(mask) - 1)]  # without a segment B it begins where A ends
        without: NDArray[np.void] = rows[~(in_a | in_b)]
        return without

    def blank(self, store: Path, numbers: Iterable[int], pad: int) -> None:
        """Put [PAD] in their places in the store of the parts `numbers`, joined in that order."""
        if not self.masks:
            return
        tokens = np.memmap(store / "train.tokens", read_json(store / "train.json")["dtype"], "r+")
        first = 0
        for number in numbers:
            starts = _array(self.parts, number, "starts").astype(np.int64) + first
            for document in np.flatnonzero(self.masks.get(number, False)):
                tokens[starts[document] : starts[document + 1]] = pad
            first = int(starts[-1])
        tokens.flush()


def find_overlap(store: Path, parts: Path, numbers: Iterable[int]) -> Overlap:
    """The documents of the parts `numbers` with the tokens of a held-out document of the token store `store`."""
    heldout = np.concatenate([np.zeros(0, np.uint64), *_heldout_hashes(store)])
    masks = {number: np.isin(_array(parts, number, "hashes"), heldout) for number in numbers}
    return Overlap(parts, {number: mask for number, mask in masks.items() if mask.any()})


def _heldout_hashes(store: Path) -> Iterator[Hashes]:
    tokens = map_file(store / "heldout.tokens", read_json(store / "heldout.json")["dtype"])
    starts = map_file(store / "heldout.starts", "<u8").astype(np.int64)
    edges = [*range(0, len(starts) - 1, _AT_ONCE), len(starts) - 1]
    for first, stop in pairwise(edges):
        yield row_hashes(tokens[starts[first] : starts[stop]], starts[first : stop + 1] - starts[first])


def _array(parts: Path, number: int, name: str) -> NDArray[np.uint64]:
    return np.frombuffer(read_bytes(parts / f"{number:05}.{name}"), "<u8")
