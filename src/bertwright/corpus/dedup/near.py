"""Near-copies of documents: those that share a band of their signatures, and then most of them.

A task takes some bands, one after another: it sorts the documents on (band, id), and compares each with the first of
its group and with the one before it. A document that is like an earlier one is dropped, also where that one goes as
well: a rule about two documents, so the tasks need not know of each other, and every one that stays is unlike all it
was compared with. The cost is linear even where thousands of stubs share a band.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import bits as mixed
from bertwright.corpus.dedup.ids import BUCKET, Ids, ids_of, parts_and_rows, prefix_bits, with_prefix
from bertwright.corpus.dedup.minhash import BANDS, SIGNATURES, WIDTH
from bertwright.corpus.part import DOCUMENTS, write_array

_PAIRS = 2**14
"""Pairs compared at a time: 1 KiB of memory each."""


@dataclass(frozen=True)
class Bands:
    """Some bands of the documents of all parts; of a single one, where a band's hash begins with `prefix`."""

    parts: tuple[Path, ...]
    """Without suffix, in source order."""
    similarity: float
    """Share of equal numbers from which two signatures are alike."""
    numbers: range
    prefix: int
    bits: int
    out: Path


def bands(parts: tuple[Path, ...], similarity: float, folder: Path) -> list[Bands]:
    """The task list."""
    documents = sum(len(np.load(path.with_suffix(DOCUMENTS), mmap_mode="r")) for path in parts)
    bits = prefix_bits(documents)
    at_once = min(BANDS, max(1, BUCKET // max(1, documents)))
    return [
        Bands(
            parts, similarity, numbers, n, bits, folder / f"drop-near-{at_once}-{numbers.start:02d}-{bits}-{n:04x}.npy"
        )
        for numbers in (range(BANDS)[at : at + at_once] for at in range(0, BANDS, at_once))
        for n in range(2**bits)
    ]


def find_near(task: Bands) -> None:
    """Write the sorted ids of the documents to drop, unless it was done before."""
    if not task.out.is_file():
        found = [_near_in_band(task, band) for band in task.numbers]
        write_array(task.out, np.unique(np.concatenate(found)))


def _near_in_band(task: Bands, band: int) -> Ids:
    keys, ids = _members(task, band)
    order = np.lexsort((ids, keys))
    keys, ids = keys[order], ids[order]
    place = np.arange(len(ids))
    begins = np.concatenate([[True], keys[1:] != keys[:-1]])[: len(ids)]
    first = np.maximum.accumulate(np.where(begins, place, 0))
    dropped = _alike(task, ids, place[~begins], first[~begins])
    others = place[(place - first > 1) & ~dropped]
    dropped |= _alike(task, ids, others, others - 1)
    return ids[dropped]


def _members(task: Bands, band: int) -> tuple[NDArray[np.uint64], Ids]:
    """The hash of the band, and the id, of each document that is looked at."""
    keys, ids = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    for part, path in enumerate(task.parts):
        signatures = np.load(path.with_suffix(SIGNATURES), mmap_mode="r")
        halves = np.ascontiguousarray(signatures[band]).view("<u8")
        hashed = mixed(halves[:, 0], halves[:, 1]) if len(halves) else np.empty(0, np.uint64)
        mine = with_prefix(hashed, task.prefix, task.bits)
        keys.append(hashed[mine])
        ids.append(ids_of(part, mine))
    return np.concatenate(keys), np.concatenate(ids)


def _alike(task: Bands, ids: Ids, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Marks, among all `ids`, those of `left` whose signature is like that of their partner in `right`."""
    found = np.zeros(len(ids), bool)
    for at in range(0, len(left), _PAIRS):
        mine, theirs = left[at : at + _PAIRS], right[at : at + _PAIRS]
        equal = _signatures(task.parts, ids[mine]) == _signatures(task.parts, ids[theirs])
        found[mine[equal.mean(axis=1) >= task.similarity]] = True
    return found


def _signatures(parts: tuple[Path, ...], ids: Ids) -> NDArray[np.uint32]:
    """The whole signatures of some documents: [documents, bands x width]."""
    numbers, rows = parts_and_rows(ids)
    found = np.empty((len(ids), BANDS * WIDTH), np.uint32)
    for part in np.unique(numbers):
        here = numbers == part
        stored = np.load(parts[part].with_suffix(SIGNATURES), mmap_mode="r")
        found[here] = stored[:, rows[here]].transpose(1, 0, 2).reshape(-1, BANDS * WIDTH)
    return found
