"""The plans of one set in an examples artifact, and the rows that an epoch and a global step take from them.

    plans/train/128/00.rows     the rows of pass 0 (dtype `ROW`), in shard order
    plans/train/128.json        number of rows of each shard, for each pass

Epoch e takes pass e mod passes in its own permutation. Epochs are concatenated: with a constant global batch G, global
step k takes rows [k*G, (k+1)*G) of the sequence, so a step may span the end of one epoch and the start of the next.
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
"""One example: the start of its segments in the shard's tokens, their token counts before truncation (at most 65,535;
without a second segment `b_count` is 0), the number of documents that begin inside A, and the label of a pair. A
continues in the next document of the document range, so documents outside the range are skipped."""
UNLABELLED = 2
"""Label of a held-out pair without one: it was imported, the plan has no pairs, or there is only one document."""


@dataclass(frozen=True)
class Plans:
    """The rows of a plan set, by pass."""

    rows: list[NDArray[np.void]]
    """[N] `ROW` for each pass, in shard order."""
    shard_rows: NDArray[np.int64]
    """[passes, shards] number of rows of each shard."""

    @classmethod
    def open(cls, examples: Artifact, plan_set: PlanSet, split: Split = "train", within: str = "") -> Plans:
        """Open the plans built for `plan_set`; `within` as for `Store.open`.

        Raises `ArtifactError` if they are missing or their sizes do not match.
        """
        folder = f"{within}plans/{split}/{plan_set.name}"
        if f"{folder}.json" not in examples.names():
            names = ", ".join(examples.counts[split]["rows"])
            raise ArtifactError(
                f"{examples.path} has no {split} plans {plan_set.name!r}, only {names}. Run the stage examples again."
            )
        shard_rows = np.array(_rows(examples.file(f"{folder}.json")), np.int64)
        files = [examples.file(f"{folder}/{number:02}.rows") for number in range(len(shard_rows))]
        rows = [map_file(file, ROW) for file in files]
        # A truncated file would silently train on fewer rows.
        if [len(of_pass) for of_pass in rows] != shard_rows.sum(axis=1).tolist():
            raise ArtifactError(
                f"the plans in {examples.path / folder} have different numbers of rows than {folder}.json records. "
                "Run the stage examples again."
            )
        return cls(rows, shard_rows)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """[passes] number of rows of each pass."""
        sizes: NDArray[np.int64] = self.shard_rows.sum(axis=1)
        return sizes

    @cached_property
    def shard_ends(self) -> NDArray[np.int64]:
        """[passes, shards] one after each shard's last row, for each pass."""
        return np.cumsum(self.shard_rows, axis=1)


class _Facts(TypedDict):
    rows: list[list[Count]]


def _rows(path: Path) -> list[list[int]]:
    """Rows of each shard, for each pass; `ArtifactError` if passes differ in the number of shards."""
    rows = read_typed(path, TypeAdapter(_Facts))["rows"]
    if len({len(of_pass) for of_pass in rows}) != 1:
        raise ArtifactError(f"{path} lists different shards in each pass. Run the stage examples again.")
    return rows


@dataclass(frozen=True)
class Epochs:
    """The endless sequence of a phase's epochs; raises `DataError` if a pass has no rows."""

    sizes: NDArray[np.int64]
    """[passes] number of rows of each pass, all above 0."""
    seed: int
    phase: str

    def __post_init__(self) -> None:
        if (self.sizes == 0).any():
            raise DataError(
                "a pass of the plans has no rows: no document falls into its share. Widen its document_range."
            )

    def locate(self, r: NDArray[np.int64]) -> list[tuple[int, int, NDArray[np.int64]]]:
        """The rows at increasing positions `r` [N] of the sequence, as (epoch, pass, rows [n]) in order."""
        sizes = self.sizes
        ends = np.cumsum(sizes)
        cycle, within = np.divmod(r, ends[-1])
        number = np.searchsorted(ends, within, side="right")
        epoch = cycle * len(sizes) + number
        position = within - (ends - sizes)[number]
        located = []
        # A step at an epoch boundary takes the end of one permutation and the start of the next.
        for e in np.unique(epoch):
            chosen, which = position[epoch == e], int(e) % len(sizes)
            order = _order(key(self.seed, "order", self.phase, int(e)), int(sizes[which]))
            located.append((int(e), which, order(chosen)))
        return located


@lru_cache(maxsize=4)
def _order(epoch_key: int, rows: int) -> Permutation:
    """Cached between steps, so that the block order of a large epoch is computed once."""
    return Permutation(epoch_key, rows)
