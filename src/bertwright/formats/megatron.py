"""Megatron-LM's indexed datasets: documents of tokenised sentences in a .bin file with a .idx file next to it.

Two headers are read, both little-endian: MMIDIDX (memory-mapped, megatron/core/datasets/indexed_dataset.py) and the
older TNTIDX (fairseq's, with Megatron's document index). These are token documents, not examples: pairs are built from
them later. A pair of files may hold an entire Wikipedia, so it is memory-mapped and read in ranges of documents. All
sizes that the index declares are compared with the sizes of the two files before anything is mapped, and all it states
about a range is checked before the range is read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.errors import DataError
from bertwright.core.files import atomic_file, write_atomic
from bertwright.examples.instances import Ints, ends, stretches
from bertwright.formats.errors import ShardError, reading
from bertwright.formats.format import DocumentFormat, FileInfo, Shape, TokenDocuments

LONGEST_DOCUMENT = 1 << 28
"""Number of tokens above which a document is treated as damaged: a gigabyte of text."""
DTYPES = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}
"""The integer dtypes among Megatron's type codes."""
MAPPED, OLD = b"MMIDIDX\x00\x00", b"TNTIDX\x00\x00"
MAPPED_HEADER, OLD_HEADER = struct.Struct("<9sQBQQ"), struct.Struct("<8sQQQQQQ")


@dataclass(frozen=True)
class Index:
    """A pair of files whose sizes are consistent; what the index points to is checked on reading."""

    file: Path
    """The .idx file."""
    dtype: np.dtype[Any]
    """Dtype of a token."""
    in_bytes: bool
    """Whether `starts` counts bytes, not tokens."""
    lengths: NDArray[Any]
    """[S] number of tokens of each sentence."""
    starts: NDArray[Any]
    """[S] where each sentence begins in the .bin file."""
    bounds: NDArray[Any]
    """[D + 1] first sentence of each document, and the number of sentences at the end."""

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def data(self) -> Path:
        """The .bin file."""
        return self.file.with_suffix(".bin")

    @property
    def counts(self) -> Ints:
        """[D] as `DocumentFile.counts`."""
        return np.diff(self.bounds)

    def pieces(self, tokens: int) -> list[tuple[int, int]]:
        """As `DocumentFile.pieces`."""
        sizes, full = np.zeros(len(self), np.int64), np.diff(self.bounds) > 0
        if full.any():
            # For an empty range, reduceat would return the value of the next sentence.
            sizes[full] = np.add.reduceat(self.lengths, self.bounds[:-1][full], dtype=np.int64)
        return stretches(sizes, tokens)

    def read(self, first: int, stop: int) -> TokenDocuments:
        """As `DocumentFile.read`; a sentence outside the .bin file raises `ShardError`."""
        bounds = self.bounds[first : stop + 1].astype(np.int64)
        lengths = self.lengths[bounds[0] : bounds[-1]].astype(np.int64)
        starts = self._starts(slice(bounds[0], bounds[-1]))
        # Every writer stores sentences contiguously; an index of kilobytes with overlapping ones took gigabytes.
        due = self._end_before(int(bounds[0])) + ends(lengths)[:-1]
        room = len(self._tokens)
        faults = [
            ((lengths < 0).any(), "a sentence has a negative length"),
            ((starts < 0).any(), "a sentence begins before the .bin file"),
            ((lengths > room - starts).any(), f"a sentence ends after the {room:,} tokens of the .bin file"),
            (
                lengths.sum() > room,
                f"sentences overlap: {lengths.sum():,} tokens of {room:,} in the .bin file",
            ),
            ((starts != due).any(), "its sentences are not stored in sequence, although every writer does that"),
        ]
        for broken, fault in faults:
            if broken:
                raise ShardError(self.file, fault)
        counts = np.diff(bounds)
        if (sizes := np.diff(ends(lengths)[ends(counts)])).max(initial=0) > LONGEST_DOCUMENT:
            raise ShardError(
                self.file, f"document {first + sizes.argmax():,} has {sizes.max():,} tokens, more than any text"
            )
        where = np.arange(lengths.sum()) + np.repeat(starts - ends(lengths)[:-1], lengths)
        ids = self._tokens[where]
        if ids.min(initial=0) < 0:
            raise ShardError(self.data, f"a document from {first:,} to {stop - 1:,} has a negative id")
        return TokenDocuments(ids, lengths, counts)

    def _end_before(self, sentence: int) -> int:
        """Return the token at which the previous sentence ends."""
        if not sentence:
            return 0
        return int(self._starts(slice(sentence - 1, sentence))[0]) + int(self.lengths[sentence - 1])

    def _starts(self, sentences: slice) -> Ints:
        """Return the token at which each of the sentences begins."""
        starts = self.starts[sentences].astype(np.int64)
        if self.in_bytes and (starts % self.dtype.itemsize).any():
            raise ShardError(self.file, "a sentence begins between two tokens")
        return starts // self.dtype.itemsize if self.in_bytes else starts

    @cached_property
    def _tokens(self) -> NDArray[Any]:
        with reading(self.data):
            return _mapped(self.data, self.dtype, self.data.stat().st_size // self.dtype.itemsize)


def open_index(file: Path) -> Index:
    """Open the pair of files with the index `file` (.idx).

    Raises `ShardError` if the index is shorter than it declares, or if its documents do not cover its sentences in
    order.
    """
    with reading(file), open(file, "rb") as handle:
        head = handle.read(OLD_HEADER.size)
    index = _old_index(file, head) if head.startswith(OLD) else _mapped_index(file, head)
    with reading(index.data):
        # Report a missing .bin file now, not when the first document is read.
        index.data.stat()
    if not len(index.bounds) or index.bounds[0] != 0 or index.bounds[-1] != len(index.lengths):
        raise ShardError(file, "the documents do not cover the sentences")
    if (index.bounds[1:] < index.bounds[:-1]).any():
        raise ShardError(file, "the document boundaries are not in ascending order")
    return index


def _mapped_index(file: Path, head: bytes) -> Index:
    if len(head) < MAPPED_HEADER.size:
        raise ShardError(file, "its header is cut off")
    _, version, code, sentences, documents = MAPPED_HEADER.unpack(head[: MAPPED_HEADER.size])
    dtype = _known(file, version, code)
    arrays = _arrays(file, MAPPED_HEADER.size, [("<i4", sentences), ("<i8", sentences), ("<i8", documents)])
    return Index(file, dtype, True, *arrays)


def _old_index(file: Path, head: bytes) -> Index:
    if len(head) < OLD_HEADER.size:
        raise ShardError(file, "its header is cut off")
    _, version, code, width, sentences, sizes, documents = OLD_HEADER.unpack(head)
    dtype = _known(file, version, code)
    counts = [sentences + 1, sentences + 1, sizes, documents]
    dimensions, offsets, lengths, bounds = _arrays(file, OLD_HEADER.size, [("<i8", count) for count in counts])
    if sizes != sentences or width != dtype.itemsize or dimensions[-1] != sentences:
        raise ShardError(file, "its sentences are not simple lists of tokens")
    return Index(file, dtype, False, lengths, offsets[:-1], bounds)


def _known(file: Path, version: int, code: int) -> np.dtype[Any]:
    if version != 1 or code not in DTYPES:
        raise ShardError(file, f"version {version}, type {code}: only version 1 with integer tokens is supported")
    return np.dtype(DTYPES[code])


def _arrays(file: Path, offset: int, parts: list[tuple[str, int]]) -> list[NDArray[Any]]:
    """Map the consecutive arrays (dtype, count) from byte `offset` on. Raises `ShardError` if the file is too short."""
    size = offset + sum(np.dtype(dtype).itemsize * count for dtype, count in parts)
    # A header may declare any number.
    if size > file.stat().st_size:
        raise ShardError(file, f"its header declares {size:,} bytes; the file has {file.stat().st_size:,}")
    arrays = []
    for dtype, count in parts:
        arrays.append(_mapped(file, np.dtype(dtype), count, offset))
        offset += arrays[-1].nbytes
    return arrays


def _mapped(file: Path, dtype: np.dtype[Any], count: int, offset: int = 0) -> NDArray[Any]:
    """Map part of a file as a read-only array; returns an empty array for an empty part, which cannot be mapped."""
    return np.memmap(file, dtype, "r", offset, (count,)) if count else np.zeros(0, dtype)


def facts(file: Path) -> FileInfo | None:
    """Return what the .idx file `file` states about itself; None when it is not an .idx file."""
    with reading(file), open(file, "rb") as handle:
        head = handle.read(len(MAPPED))
    if head != MAPPED and not head.startswith(OLD):
        return None
    index = open_index(file)
    index.read(max(0, len(index) - 1), len(index))  # a .bin file that is cut off ends before the last document
    return FileInfo("megatron", Shape(None, None, static=False), len(index), documents=True)


def write_documents(file: Path, blocks: Iterable[TokenDocuments], vocabulary_size: int) -> int:
    """Write `file` (.idx) in the newer layout and the .bin file next to it; returns the number of documents.

    The dtype follows Megatron: 16 bits below 65,500 entries, otherwise 32. The .bin file is in place before the index.
    """
    code = 8 if vocabulary_size < 65_500 else 4
    dtype = np.dtype(DTYPES[code])
    lengths, counts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    with atomic_file(file.with_suffix(".bin")) as temporary, open(temporary, "wb") as data:
        for block in blocks:
            if len(block.ids) and not 0 <= block.ids.min() <= block.ids.max() < vocabulary_size:
                raise DataError(f"{file}: a document has an id outside the {vocabulary_size:,} entries.")
            data.write(block.ids.astype(dtype).tobytes())
            lengths.append(block.lengths)
            counts.append(block.counts)
    sizes, sentences = np.concatenate(lengths), ends(np.concatenate(counts))
    head = MAPPED_HEADER.pack(MAPPED, 1, code, len(sizes), len(sentences))
    starts = ends(sizes)[:-1] * dtype.itemsize
    # Written after the data, so that an existing index always has its data.
    write_atomic(file, b"".join([head, sizes.astype("<i4").tobytes(), starts.tobytes(), sentences.tobytes()]))
    return len(sentences) - 1


FORMAT = DocumentFormat(
    "megatron", open_index, facts, write_documents, "_text_sentence.idx", lambda file: (file.with_suffix(".bin"),)
)
