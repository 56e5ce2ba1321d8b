"""The plans of one set in an examples artifact, and which of their rows an epoch and a global step take.

    plans/train/128/00.rows     the rows of pass 0 (dtype `ROW`), shard after shard
    plans/train/128.json        rows of each shard, for each pass

Epoch e takes pass e mod passes in an order of its own. Epochs follow each other without a seam: global step k is
rows [k*G, (k+1)*G) of their sequence, so a step may take the end of one epoch and the beginning of the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError, DataError
from bertwright.core.files import read_typed
from bertwright.core.rng import key
from bertwright.core.shapes import Count
from bertwright.examples.config import PlanSet
from bertwright.examples.shuffle import Permutation
from bertwright.examples.store import Split, map_file

ROW = np.dtype([
    ("a_start", "<u4"), ("b_start", "<u4"), ("a_count", "<u2"), ("b_count", "<u2"), ("breaks", "<u2"), ("label", "u1"),
])  # fmt: skip
"""One example: where its segments start in the shard's tokens, how many tokens they have before truncation (at most
65,535; without a second segment `b_count` is 0), how many documents begin inside A, and the label of a pair."""
UNLABELLED = 2
"""The label of a held-out pair that has none: others made it, the plan is not about pairs, or its document is alone."""


@dataclass(frozen=True)
class Plans:
    """The rows of a plan set, by pass."""

    rows: list[NDArray[np.void]]
    """[N] `ROW` for each pass, shard after shard."""
    shard_rows: NDArray[np.int64]
    """[passes, shards] how many of them each shard has."""

    @classmethod
    def open(cls, examples: Artifact, plan_set: PlanSet, split: Split = "train", within: str = "") -> Plans:
        """The plans made for `plan_set`; `within` as for `Store.open`."""
        folder = f"{within}plans/{split}/{plan_set.name}"
        if f"{folder}.json" not in examples.names():
            names = ", ".join(examples.counts[split]["rows"])
            raise ArtifactError(
                f"{examples.path} has no {split} plans {plan_set.name!r}, only {names}. Run the stage examples again."
            )
        shard_rows = np.array(_rows(examples.file(f"{folder}.json")), np.int64)
        files = [examples.file(f"{folder}/{number:02}.rows") for number in range(len(shard_rows))]
        rows = [map_file(file, ROW) for file in files]
        # A file that was cut would train on fewer rows without a word.
        if [len(of_pass) for of_pass in rows] != shard_rows.sum(axis=1).tolist():
            raise ArtifactError(
                f"the plans in {examples.path / folder} have other numbers of rows than {folder}.json says. Run the "
                "stage examples again."
            )
        return cls(rows, shard_rows)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """[passes] rows of each pass."""
        sizes: NDArray[np.int64] = self.shard_rows.sum(axis=1)
        return sizes

    @cached_property
    def shard_ends(self) -> NDArray[np.int64]:
        """[passes, shards] the row after each shard's last, for each pass."""
        return np.cumsum(self.shard_rows, axis=1)


class _Facts(TypedDict):
    rows: list[list[Count]]


def _rows(path: Path) -> list[list[int]]:
    """Rows of each shard, for each pass, all of as many shards."""
    rows = read_typed(path, TypeAdapter(_Facts))["rows"]
    if len({len(of_pass) for of_pass in rows}) != 1:
        raise ArtifactError(f"{path} tells of other shards in each pass. Run the stage examples again.")
    return rows


@dataclass(frozen=True)
class Epochs:
    """The endless sequence of a phase's epochs, by the rows of each pass."""

    sizes: NDArray[np.int64]
    """[passes] rows of each pass, none of them 0."""
    seed: int
    phase: str

    def __post_init__(self) -> None:
        if (self.sizes == 0).any():
            raise DataError("a pass of the plans has no rows: no document lies in its share. Widen its document_range.")

    def locate(self, r: NDArray[np.int64]) -> list[tuple[int, int, NDArray[np.int64]]]:
        """The rows at rising positions `r` [N] of the sequence, as (epoch, pass, rows [n]) in order."""
        sizes = self.sizes
        ends = np.cumsum(sizes)
        cycle, within = np.divmod(r, ends[-1])
        number = np.searchsorted(ends, within, side="right")
        epoch = cycle * len(sizes) + number
        position = within - (ends - sizes)[number]
        located = []
        # A step at a seam takes the end of one order and the beginning of the next.
        for e in np.unique(epoch):
            chosen, which = position[epoch == e], int(e) % len(sizes)
            order = _order(key(self.seed, "order", self.phase, int(e)), int(sizes[which]))
            located.append((int(e), which, order(chosen)))
        return located


@lru_cache(maxsize=4)
def _order(epoch_key: int, rows: int) -> Permutation:
    """Kept between steps: a large epoch's order of blocks is worked out once."""
    return Permutation(epoch_key, rows)
