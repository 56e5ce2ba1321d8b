"""Exact copies of documents, and of paragraphs, without an index of the whole corpus in memory.

Extraction leaves a row with a hash for each of them. A task takes the rows whose hash begins with its prefix, sorts
them on (hash, id) and sets down the ids of all but the first of each hash: the first in the sources stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertwright.corpus.dedup.drawn import copies
from bertwright.corpus.dedup.fates import of_kept_documents
from bertwright.corpus.dedup.ids import Ids, ids_of, prefix_bits, with_prefix
from bertwright.corpus.part import PARAGRAPHS, is_written, map_array, read_array, write_array


@dataclass(frozen=True)
class Bucket:
    """Rows of all parts whose hash begins with `prefix` (of `bits` bits)."""

    parts: tuple[Path, ...]
    """Without suffix, in source order."""
    table: str
    """Suffix of the rows: `DOCUMENTS` or `PARAGRAPHS`."""
    measure: str
    least: int
    """Paragraphs of at least so many "words" or "bytes" are looked at."""
    prefix: int
    bits: int
    out: Path


def buckets(parts: tuple[Path, ...], table: str, folder: Path, measure: str = "words", least: int = 0) -> list[Bucket]:
    """The task list for the documents, or for the paragraphs of the documents that are kept so far."""
    bits = prefix_bits(sum(len(map_array(path.with_suffix(table))) for path in parts))
    name = table.removesuffix(".npy").removeprefix(".")
    return [
        Bucket(parts, table, measure, least, n, bits, folder / f"drop-{name}-{bits}-{n:04x}.npy")
        for n in range(2**bits)
    ]


def find_copies(bucket: Bucket) -> None:
    """Write the sorted ids of what is to be dropped, unless it was done before."""
    if is_written(bucket.out):
        return
    hashes, ids = _members(bucket)
    order = np.lexsort((ids, hashes[:, 1], hashes[:, 0]))
    same = np.all(hashes[order[1:]] == hashes[order[:-1]], axis=1)
    write_array(bucket.out, np.sort(ids[order[1:][same]]))


def _members(bucket: Bucket) -> tuple[NDArray[np.uint64], Ids]:
    hashes, ids = [np.empty((0, 2), np.uint64)], [np.empty(0, np.uint64)]
    for part, path in enumerate(bucket.parts):
        rows = read_array(path.with_suffix(bucket.table))
        mine = with_prefix(rows["high"], bucket.prefix, bucket.bits)
        if bucket.table == PARAGRAPHS:
            compared = of_kept_documents(path) & (rows[bucket.measure] >= bucket.least)
        else:
            compared = copies(path) > 0
        mine = mine[compared[mine]]
        hashes.append(np.stack([rows["high"][mine], rows["low"][mine]], axis=1))
        ids.append(ids_of(part, mine))
    return np.concatenate(hashes), np.concatenate(ids)
