"""Compares pairs of documents and decides which of the later ones are near-copies of the earlier."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertwright.corpus.dedup.ids import Ids, parts_and_rows
from bertwright.corpus.dedup.minhash import BANDS, WIDTH, read_signatures
from bertwright.corpus.dedup.runs import Columns, read_sorted, write_columns
from bertwright.corpus.part import is_written

# Pairs compared at a time: each takes 1 KiB of memory.
_AT_ONCE = 2**14
# Pairs gathered before duplicates are removed: 16 bytes each, and the same again while sorting.
_GATHERED = 2**20


@dataclass(frozen=True)
class Compare:
    """A group of neighbouring parts whose documents are compared with their paired documents, in any part."""

    parts: tuple[Path, ...]
    """All parts, without suffix, in source order."""
    pairs: tuple[Path, ...]
    """Files of sorted pairs [2, pairs]: the ids of the later and the earlier document, with a fence for each group."""
    group: int
    groups: int
    similarity: float
    """Minimum share of equal numbers for two signatures to count as alike."""
    out: Path


def compare(task: Compare) -> None:
    """Write the sorted ids of the group's documents to drop, unless the file exists."""
    if is_written(task.out):
        return
    later, earlier = _gathered(task)
    starts = np.flatnonzero(np.concatenate([[True], later[1:] != later[:-1]])[: len(later)])
    counts = np.diff(starts, append=len(later))
    dropped = np.zeros(len(starts), bool)
    # Compares all first partners at once, then all second ones: pair by pair would need a Python call each.
    for nth in range(counts.max(initial=0)):  # a document that is like one partner is compared with no further one
        undecided = np.flatnonzero(~dropped & (counts > nth))
        at = starts[undecided] + nth
        dropped[undecided] = _alike(task, later[at], earlier[at])
    write_columns(task.out, later[starts[dropped]])


def unique_pairs(pairs: Columns) -> Columns:
    """The pairs [2, pairs], sorted and without duplicates."""
    pairs = pairs[:, np.lexsort((pairs[1], pairs[0]))]
    other = np.concatenate([[True], (pairs[:, 1:] != pairs[:, :-1]).any(axis=0)])[: pairs.shape[1]]
    return pairs[:, other]


def _gathered(task: Compare) -> Columns:
    """The pairs of the group from all bands."""
    pairs, size = [np.empty((2, 0), np.uint64)], 0
    group = range(task.group, task.group + 1)
    for path in task.pairs:
        pairs.append(read_sorted(path, (1, 2), task.groups, group))
        size += pairs[-1].shape[1]
        if size > _GATHERED:
            pairs, size = [unique_pairs(np.concatenate(pairs, axis=1))], 0
    return unique_pairs(np.concatenate(pairs, axis=1))


def _alike(task: Compare, later: Ids, earlier: Ids) -> NDArray[np.bool_]:
    """Which of these pairs have similar signatures: [pairs]."""
    alike = np.empty(len(later), bool)
    for at in range(0, len(later), _AT_ONCE):
        of_later, of_earlier = (_signatures(task.parts, ids[at : at + _AT_ONCE]) for ids in (later, earlier))
        alike[at : at + _AT_ONCE] = (of_later == of_earlier).mean(axis=1) >= task.similarity
    return alike


def _signatures(parts: tuple[Path, ...], ids: Ids) -> NDArray[np.uint32]:
    """The complete signatures of some documents: [documents, bands x width]."""
    # The first document of a group is the partner of all others in it; it is read only once.
    distinct, which = np.unique(ids, return_inverse=True)
    numbers, rows = parts_and_rows(distinct)
    signatures = np.empty((len(distinct), BANDS * WIDTH), "<u4")
    bounds = [0, *(1 + np.flatnonzero(np.diff(numbers))).tolist(), len(distinct)]
    for start, stop in pairwise(bounds):
        if start < stop:
            read_signatures(parts[numbers[start]], rows[start:stop].tolist(), signatures[start:stop])
    return signatures[which]
