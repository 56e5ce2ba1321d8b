"""The final shards: the kept documents in source order, cut by a count of uncompressed text bytes.

Document k lies in the shard floor(bytes of the kept documents before k / shard_bytes), so neither the pieces of the
sources nor the number of workers leaves a trace in the files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import zstandard
from numpy.typing import NDArray

from bertwright.core.files import write_atomic
from bertwright.corpus.dedup.exact import Bucket, dropped_rows
from bertwright.corpus.text import FACTS, TEXT

_LEVEL = 6


@dataclass(frozen=True)
class Slice:
    """Kept documents of one part: the rows, and the parts' files (without suffix)."""

    part: Path
    number: int
    first: int
    """Bytes of kept text before this part."""


@dataclass(frozen=True)
class Shard:
    """One shard to write."""

    number: int
    """Its place among the shards."""
    start: int
    stop: int
    """Kept documents that begin in [start, stop) of the corpus's text bytes are in it."""
    slices: tuple[Slice, ...]
    buckets: tuple[Bucket, ...]
    folder: Path


@dataclass(frozen=True)
class Plan:
    """Which documents go where, and how much there is."""

    shards: list[Shard]
    documents: int
    duplicates: int
    sentences: int
    words: int
    bytes: int


def plan(parts: list[Path], buckets: list[Bucket], shard_bytes: int, folder: Path) -> Plan:
    """Lay the kept documents of all parts end to end and cut them into shards; reads one part's rows at a time."""
    totals = np.zeros(3, np.int64)
    documents = duplicates = 0
    members: dict[int, list[Slice]] = {}
    for number, part in enumerate(parts):
        rows = np.load(part.with_suffix(".npy"), allow_pickle=False)
        kept = np.delete(rows, dropped_rows(buckets, number))
        piece = Slice(part, number, int(totals[0]))
        for shard in np.unique(_starts(kept["bytes"], piece.first) // shard_bytes):
            members.setdefault(int(shard), []).append(piece)
        totals += [kept[name].sum() for name in ("bytes", "sentences", "words")]
        documents, duplicates = documents + len(kept), duplicates + len(rows) - len(kept)
    shards = [
        Shard(i, k * shard_bytes, (k + 1) * shard_bytes, tuple(members[k]), tuple(buckets), folder)
        for i, k in enumerate(sorted(members))
    ]
    size, sentences, words = map(int, totals)
    return Plan(shards, documents, duplicates, sentences, words, size)


def write_shard(shard: Shard) -> None:
    """Write the text and the facts of one shard, unless both are there."""
    text, facts = (shard.folder / f"{shard.number:05d}{suffix}" for suffix in (TEXT, FACTS))
    if text.is_file() and facts.is_file():
        return
    compressors = [zstandard.ZstdCompressor(level=_LEVEL).compressobj() for _ in range(2)]
    done: tuple[list[bytes], list[bytes]] = ([], [])
    for document in _documents(shard):
        for compressor, blocks, data in zip(compressors, done, document, strict=True):
            blocks.append(compressor.compress(data))
    for path, compressor, blocks in zip((text, facts), compressors, done, strict=True):
        write_atomic(path, b"".join([*blocks, compressor.flush()]))


def _starts(sizes: NDArray[np.int64], first: int) -> NDArray[np.int64]:
    """Where each document begins, given its size and where the first one does."""
    return first + np.cumsum(sizes) - sizes


def _documents(shard: Shard) -> Iterator[tuple[bytes, bytes]]:
    """The text and the line of facts of each document of the shard."""
    for piece in shard.slices:
        rows = np.load(piece.part.with_suffix(".npy"), allow_pickle=False)
        kept = np.delete(np.arange(len(rows)), dropped_rows(list(shard.buckets), piece.number))
        starts = _starts(rows["bytes"][kept], piece.first)
        mine = kept[(starts >= shard.start) & (starts < shard.stop)]
        text = _unpacked(piece.part.with_suffix(TEXT))
        lines = _unpacked(piece.part.with_suffix(FACTS)).splitlines(keepends=True)
        offsets = _starts(rows["bytes"], 0)
        for row in mine.tolist():
            yield text[offsets[row] : offsets[row] + rows["bytes"][row]], lines[row]


def _unpacked(path: Path) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes())
