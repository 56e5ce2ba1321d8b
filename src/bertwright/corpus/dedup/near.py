"""Near-copies of documents: those that share a band of their signatures, and then most of them.

In each band documents with the same numbers are a group, and each is paired with the first of its group and with the
one before it. All pairs of all bands are brought together by the later document, which is compared with one after the
other until it is like one. A document that is like an earlier one is dropped, also where that one goes as well: a rule
about two documents, so the tasks need not know of each other, and every one that stays is unlike all it was paired
with. Every step reads and writes as much as there are documents, even where thousands of stubs share a band.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bertwright.core.rng import bits as mixed
from bertwright.core.tasks import Executor
from bertwright.corpus.dedup.compare import Compare, compare, unique_pairs
from bertwright.corpus.dedup.ids import Dropped, fences, ids_of
from bertwright.corpus.dedup.minhash import BANDS, signatures_of
from bertwright.corpus.dedup.outcome import copies
from bertwright.corpus.dedup.runs import BUCKET, SUFFIX, Columns, bucket, groups, prefix_bits, write_run, write_sorted
from bertwright.corpus.part import DOCUMENTS, is_written, map_array

_RUN = (BANDS, 2)
"""A run is a table of (hash, id) for each band."""
# The numbers of a signature of a text without runs of words.
_NOTHING = np.uint32(0xFFFF_FFFF)


@dataclass(frozen=True)
class SortBands:
    """Neighbouring parts whose documents are to be sorted by each of their bands."""

    paths: tuple[Path, ...]
    """Of the parts, without suffix."""
    parts: range
    out: Path


@dataclass(frozen=True)
class Bands:
    """Some bands of all documents; of a single one, where its hash begins with `prefix` (of `bits` bits)."""

    runs: tuple[Path, ...]
    numbers: range
    prefix: int
    bits: int
    groups: Sequence[range]
    """Of parts, each compared by a task of its own."""
    out: Path


def find_near(parts: tuple[Path, ...], similarity: float, folder: Path, executor: Executor) -> Dropped:
    """The near-copies among signed documents: a share of `similarity` of the numbers of two signatures is equal."""
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
    return Dropped.of((task.out, group) for task, group in zip(compared, cut, strict=True))


def sort_bands(task: SortBands) -> None:
    """Write the hash of the band and the id of each document that is looked at, unless they are there.

    As [bands, 2, documents], in each band in the order of the hashes.
    """
    if is_written(task.out):
        return
    hashes, ids = [np.empty((BANDS, 0), np.uint64)], [np.empty(0, np.uint64)]
    for part, path in zip(task.parts, task.paths, strict=True):
        signatures = signatures_of(path)
        # A text without a single word has no runs, and all such have one signature.
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
    """The task list: several bands of few documents at once, a part of one band of many."""
    bits = prefix_bits(documents)
    # A band of few documents fills no bucket, and each task opens every run.
    at_once = min(BANDS, max(1, BUCKET // max(1, documents)))
    return [
        Bands(runs, numbers, n, bits, groups, folder / f"pairs-{at_once}-{numbers.start:02d}-{bits}-{n:04x}{SUFFIX}")
        for numbers in (range(BANDS)[at : at + at_once] for at in range(0, BANDS, at_once))
        for n in range(2**bits)
    ]


def pair_in_bands(task: Bands) -> None:
    """Write the pairs to be compared as [later and earlier id, pairs], unless they are there."""
    if not is_written(task.out):
        pairs = [_pairs(bucket(task.runs, _RUN, task.prefix, task.bits, band)) for band in task.numbers]
        write_sorted(task.out, unique_pairs(np.concatenate(pairs, axis=1))[None], fences(task.groups))


def _pairs(members: Columns) -> Columns:
    """Each document of a group beside the first of it, and from the third on beside the one before: [2, pairs]."""
    keys, ids = _in_groups(members)
    place = np.arange(len(ids))
    begins = np.concatenate([[True], keys[1:] != keys[:-1]])[: len(ids)]
    first = np.maximum.accumulate(np.where(begins, place, 0))
    second, third = np.flatnonzero(place - first > 0), np.flatnonzero(place - first > 1)  # and all after it
    # The first and the one before, not all of the group: thousands of stubs of one template would be millions of
    # pairs.
    later, earlier = np.concatenate([second, third]), np.concatenate([first[second], third - 1])
    return np.stack([ids[later], ids[earlier]])


def _in_groups(members: Columns) -> Columns:
    """Those of [hash and id, documents] that are not alone with their hash, in order."""
    order = np.argsort(members[0])
    keys = members[0, order]
    same, grouped = keys[1:] == keys[:-1], np.zeros(len(keys), bool)
    grouped[1:] |= same
    grouped[:-1] |= same
    members_in_groups = members[:, order[grouped]]
    return members_in_groups[:, np.lexsort(members_in_groups[::-1])]
