"""Near-copies of documents: those that share a band of their signatures, and then most of them.

A task takes some bands: it sorts the documents on (band, id), and compares each with the first of its group and with
the one before it. A document that is like an earlier one is dropped, also where that one goes as well: a rule about two
documents, so the tasks need not know of each other, and every one that stays is unlike all it was compared with. The
cost is linear even where thousands of stubs share a band.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import bits as mixed
from bertwright.corpus.dedup.drawn import copies
from bertwright.corpus.dedup.ids import BUCKET, Ids, ids_of, parts_and_rows, prefix_bits, with_prefix
from bertwright.corpus.dedup.minhash import BANDS, SIGNATURES, WIDTH
from bertwright.corpus.part import DOCUMENTS, is_written, map_array, write_array

_PAIRS = 2**14
"""Pairs compared at a time: 1 KiB of memory each."""

_NOTHING = np.uint32(0xFFFF_FFFF)
"""What stands in the signature of a text without runs of words."""


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
    documents = sum(len(map_array(path.with_suffix(DOCUMENTS))) for path in parts)
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
    if is_written(task.out):
        return
    pairs = [_pairs(keys, ids) for keys, ids in _members(task)]
    with_first, with_last = (np.concatenate(of_bands, axis=1) for of_bands in zip(*pairs, strict=True))
    dropped = _alike(task, with_first)
    others = with_last[:, ~np.isin(with_last[0], dropped)]
    write_array(task.out, np.union1d(dropped, _alike(task, others)))


def _members(task: Bands) -> list[tuple[NDArray[np.uint64], Ids]]:
    """For each band the hash of it, and the id, of each document that is looked at."""
    found: list[tuple[list[NDArray[np.uint64]], list[Ids]]] = [([], []) for _ in task.numbers]
    for part, path in enumerate(task.parts):
        signatures = map_array(path.with_suffix(SIGNATURES))[task.numbers.start : task.numbers.stop]
        halves = np.ascontiguousarray(signatures).view("<u8")
        hashed = mixed(halves[..., 0], halves[..., 1])
        # A text without a single word has no runs, and all such have one signature.
        compared = (copies(path) > 0) & (signatures[0] != _NOTHING).any(axis=1)
        for (keys, ids), band in zip(found, hashed, strict=True):
            mine = with_prefix(band, task.prefix, task.bits)
            mine = mine[compared[mine]]
            keys.append(band[mine])
            ids.append(ids_of(part, mine))
    return [(np.concatenate(keys), np.concatenate(ids)) for keys, ids in found]


def _pairs(keys: NDArray[np.uint64], ids: Ids) -> tuple[Ids, Ids]:
    """What is compared in a band: documents with the first of their group, and with the one before: [2, pairs]."""
    order = np.lexsort((ids, keys))
    keys, ids = keys[order], ids[order]
    place = np.arange(len(ids))
    begins = np.concatenate([[True], keys[1:] != keys[:-1]])[: len(ids)]
    first = np.maximum.accumulate(np.where(begins, place, 0))
    second, third = np.flatnonzero(place - first > 0), np.flatnonzero(place - first > 1)  # and all after it
    return np.stack([ids[second], ids[first[second]]]), np.stack([ids[third], ids[third - 1]])


def _alike(task: Bands, pairs: Ids) -> Ids:
    """The upper ids of the pairs whose signatures are alike; a pair of several bands is compared once."""
    pairs = np.unique(pairs, axis=1)
    found = [np.empty(0, np.uint64)]
    for at in range(0, pairs.shape[1], _PAIRS):
        mine, theirs = pairs[:, at : at + _PAIRS]
        equal = _signatures(task.parts, mine) == _signatures(task.parts, theirs)
        found.append(mine[equal.mean(axis=1) >= task.similarity])
    return np.concatenate(found)


def _signatures(parts: tuple[Path, ...], ids: Ids) -> NDArray[np.uint32]:
    """The whole signatures of some documents: [documents, bands x width]."""
    numbers, rows = parts_and_rows(ids)
    found = np.empty((len(ids), BANDS * WIDTH), np.uint32)
    for part in np.unique(numbers):
        here = numbers == part
        stored = map_array(parts[part].with_suffix(SIGNATURES))
        found[here] = stored[:, rows[here]].transpose(1, 0, 2).reshape(-1, BANDS * WIDTH)
    return found
