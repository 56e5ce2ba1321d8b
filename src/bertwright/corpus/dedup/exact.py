"""Exact de-duplication in three task lists, without an index of the whole corpus in memory.

(1) Extraction leaves a row (hash, size) per document. (2) Here: each task takes the documents whose hash begins with
its prefix, sorts them on (hash, id) and sets down the ids of all but the first of each hash: the lowest id wins.
(3) Writing the shards leaves those out. An id is (part, row), which is the document's place in the sources.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertwright.core.files import write_atomic

BUCKET = 2**20
"""Documents per task, about: 24 bytes of memory each, and as much again while sorting."""
_ROW_BITS = 32


@dataclass(frozen=True)
class Bucket:
    """The documents of all parts whose hash begins with `prefix` (of `bits` bits)."""

    parts: tuple[Path, ...]
    """Without suffix, in source order."""
    prefix: int
    bits: int
    out: Path


def buckets(parts: Sequence[Path], documents: int, folder: Path) -> list[Bucket]:
    """The task list for so many documents."""
    bits = max(0, (documents - 1) // BUCKET).bit_length()
    return [Bucket(tuple(parts), n, bits, folder / f"drop-{bits}-{n:04x}.npy") for n in range(2**bits)]


def find_duplicates(bucket: Bucket) -> None:
    """Write the sorted ids of the documents to drop, unless it was done before."""
    if bucket.out.is_file():
        return
    hashes, ids = _members(bucket)
    order = np.lexsort((ids, hashes[:, 1], hashes[:, 0]))
    same = np.all(hashes[order[1:]] == hashes[order[:-1]], axis=1)
    buffer = io.BytesIO()
    np.save(buffer, np.sort(ids[order[1:][same]]), allow_pickle=False)
    write_atomic(bucket.out, buffer.getvalue())


def dropped_rows(buckets: list[Bucket], part: int) -> NDArray[np.int64]:
    """The rows of this part that are duplicates of earlier documents, sorted."""
    found = []
    for bucket in buckets:
        ids = np.load(bucket.out, mmap_mode="r", allow_pickle=False)
        first, last = np.searchsorted(ids, np.array([part << _ROW_BITS, (part + 1) << _ROW_BITS], np.uint64))
        found.append(ids[first:last].astype(np.int64) - (part << _ROW_BITS))
    return np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)


def _members(bucket: Bucket) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    hashes, ids = [np.empty((0, 2), np.uint64)], [np.empty(0, np.uint64)]
    for number, path in enumerate(bucket.parts):
        rows = np.load(path.with_suffix(".npy"), allow_pickle=False)
        high = rows["high"] >> np.uint64(1)  # 63 bits, so that a prefix of no bits at all is a shift numpy defines
        mine = np.flatnonzero(high >> np.uint64(63 - bucket.bits) == bucket.prefix)
        hashes.append(np.stack([rows["high"][mine], rows["low"][mine]], axis=1))
        ids.append(mine.astype(np.uint64) | np.uint64(number << _ROW_BITS))
    return np.concatenate(hashes), np.concatenate(ids)
