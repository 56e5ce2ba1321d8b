"""Finds near-copies of documents: candidates share a band of their signatures, near-copies most of their signature.

In each band, documents with the same numbers form a group; each is paired with the first of its group and with the one
before it. The pairs of all bands are grouped by the later document, which is compared with its partners in turn until
one is similar. A document that is similar to an earlier one is dropped, even if that one is dropped too: the rule
concerns two documents, so tasks are independent, and every document that stays is unlike all its partners. Every
step reads and writes an amount proportional to the documents, even where thousands of stubs share a band.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import bits as mixed
from bertwright.core.tasks import Executor
from bertwright.corpus.decisions import copies
from bertwright.corpus.dedup.id_files import (
    BUCKET,
    SUFFIX,
    Columns,
    Dropped,
    Ids,
    bucket,
    fences,
    groups,
    ids_of,
    parts_and_rows,
    prefix_bits,
    read_sorted,
    write_columns,
    write_run,
    write_sorted,
)
from bertwright.corpus.dedup.minhash import BANDS, WIDTH, read_signatures, signatures_of
from bertwright.corpus.part import DOCUMENTS, is_written, map_array

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
    later, earlier = _gather_pairs(task)
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


def _gather_pairs(task: Compare) -> Columns:
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


_RUN = (BANDS, 2)
"""A run has a table of (hash, id) for each band."""
# All numbers in the signature of a text without runs of words.
_NOTHING = np.uint32(0xFFFF_FFFF)


@dataclass(frozen=True)
class SortBands:
    """Neighbouring parts whose documents are to be sorted by each band."""

    paths: tuple[Path, ...]
    """Paths of the parts, without suffix."""
    parts: range
    out: Path


@dataclass(frozen=True)
class Bands:
    """Some bands of all documents; if only one, the rows whose hash begins with `prefix` (of `bits` bits)."""

    runs: tuple[Path, ...]
    numbers: range
    prefix: int
    bits: int
    groups: Sequence[range]
    """Groups of parts, each compared by a separate task."""
    out: Path


def find_near(parts: tuple[Path, ...], similarity: float, folder: Path, executor: Executor) -> Dropped:
    """The near-copies among signed documents: at least a share of `similarity` of two signatures' numbers is equal."""
    sizes = [len(map_array(path.with_suffix(DOCUMENTS))) for path in parts]
    cut = groups(sizes)
    sorts = [SortBands(parts[g.start : g.stop], g, folder / f"run-bands-{g.start:06d}{SUFFIX}") for g in cut]
    executor.map(sort_bands, sorts, "corpus")
    paired = bands(tuple(task.out for task in sorts), sum(sizes), cut, folder)
    executor.map(pair_in_bands, paired, "corpus")
    pairs = tuple(task.out for task in paired)
    compared = [
        Compare(parts, pairs, n, len(cut), similarity, folder / f"drop-near-{g.start:06d}{SUFFIX}")
        for n, g in enumerate(cut)
    ]
    executor.map(compare, compared, "corpus")
    return Dropped(tuple(task.out for task in compared), tuple(group.start for group in cut))


def sort_bands(task: SortBands) -> None:
    """Write the band hash and the id of each compared document, unless the file exists.

    The shape is [bands, 2, documents]; each band is sorted by hash.
    """
    if is_written(task.out):
        return
    hashes, ids = [np.empty((BANDS, 0), np.uint64)], [np.empty(0, np.uint64)]
    for part, path in zip(task.parts, task.paths, strict=True):
        signatures = signatures_of(path)
        # Texts without any word have no runs and all share one signature, so they are not compared.
        compared = np.flatnonzero((copies(path) > 0) & (signatures[:, 0] != _NOTHING).any(axis=1))
        halves = signatures[compared].view("<u8")
        hashes.append(mixed(halves[..., 0], halves[..., 1]).T)
        ids.append(ids_of(part, compared))
    members = np.concatenate(ids)
    run = np.empty((BANDS, 2, len(members)), np.uint64)
    np.concatenate(hashes, axis=1, out=run[:, 0])
    for band in run:
        order = np.argsort(band[0])
        band[0], band[1] = band[0][order], members[order]
    write_run(task.out, run)


def bands(runs: tuple[Path, ...], documents: int, groups: Sequence[range], folder: Path) -> list[Bands]:
    """The task list: with few documents several bands per task, with many a part of one band per task."""
    bits = prefix_bits(documents)
    # With few documents one band does not fill a bucket, and each task opens every run.
    at_once = min(BANDS, max(1, BUCKET // max(1, documents)))
    return [
        Bands(runs, numbers, n, bits, groups, folder / f"pairs-{at_once}-{numbers.start:02d}-{bits}-{n:04x}{SUFFIX}")
        for numbers in (range(BANDS)[at : at + at_once] for at in range(0, BANDS, at_once))
        for n in range(2**bits)
    ]


def pair_in_bands(task: Bands) -> None:
    """Write the pairs to compare as [later and earlier id, pairs], unless the file exists."""
    if not is_written(task.out):
        pairs = [_pairs(bucket(task.runs, _RUN, task.prefix, task.bits, band)) for band in task.numbers]
        write_sorted(task.out, unique_pairs(np.concatenate(pairs, axis=1))[None], fences(task.groups))


def _pairs(members: Columns) -> Columns:
    """Each document of a group paired with the first, and from the third on also with the one before: [2, pairs]."""
    keys, ids = _in_groups(members)
    place = np.arange(len(ids))
    begins = np.concatenate([[True], keys[1:] != keys[:-1]])[: len(ids)]
    first = np.maximum.accumulate(np.where(begins, place, 0))
    second, third = np.flatnonzero(place - first > 0), np.flatnonzero(place - first > 1)  # and all after it
    # Not all pairs of the group: thousands of stubs from one template would make millions of pairs.
    later, earlier = np.concatenate([second, third]), np.concatenate([first[second], third - 1])
    return np.stack([ids[later], ids[earlier]])


def _in_groups(members: Columns) -> Columns:
    """The columns of [hash and id, documents] that share their hash with another, sorted."""
    order = np.argsort(members[0])
    keys = members[0, order]
    same, grouped = keys[1:] == keys[:-1], np.zeros(len(keys), bool)
    grouped[1:] |= same
    grouped[:-1] |= same
    members_in_groups = members[:, order[grouped]]
    return members_in_groups[:, np.lexsort(members_in_groups[::-1])]
