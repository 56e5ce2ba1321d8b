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
    return Dropped.of((task.out, group) for task, group in zip(compared, cut, strict=True))


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
