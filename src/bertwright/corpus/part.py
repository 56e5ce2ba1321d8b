"""A part: the kept documents of one piece, with the hash of each text and of each paragraph.

A part consists of four files in the stage's folder of parts: the documents (`.txt.zst`), their metadata
(`.jsonl.zst`), and one row of numbers per document and per paragraph (`.documents.npy`, `.paragraphs.npy`). `.json`
holds the counts and the hashes of the other files (`core.task_records`); it is written last, so a part without it is
built again.
"""

from __future__ import annotations

import hashlib
import io
import json
from itertools import pairwise
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from bertwright.core.files import naming, read_bytes, write_atomic
from bertwright.core.task_records import is_done, mark_done
from bertwright.corpus.words import count_tokens_of_sentences, has_unspaced

DOCUMENTS, PARAGRAPHS = ".documents.npy", ".paragraphs.npy"
HASH = [("high", "<u8"), ("low", "<u8")]
"""The two halves of a 128-bit hash."""
_HALVES = Struct(">QQ")
DOCUMENT = np.dtype([*HASH, ("paragraphs", "<i8")])
"""Per document: the hash of its text, and how many paragraphs it has."""
PARAGRAPH = np.dtype([*HASH, ("sentences", "<i4"), ("words", "<i4"), ("bytes", "<i4")])
"""Per paragraph: the hash of its case-folded text, and its size with the newline after each sentence."""


class PartWriter:
    """Collects the documents of one part; `finish` writes its files."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._texts, self._facts = _Compressed(), _Compressed()
        self._documents, self._paragraphs = list[tuple[int, ...]](), list[tuple[int, ...]]()

    def add(self, sentences: list[str], starts: list[int], facts: dict[str, Any]) -> int:
        """Add a kept document: its sentences, the indices of those that begin a paragraph, and its side-car line.

        Returns the bytes that it takes in a shard.
        """
        document = "\n".join(sentences)
        data, unspaced = f"{document}\n\n".encode(), has_unspaced(document)  # checked once, not per paragraph
        self._documents.append((*_hash(data), len(starts)))
        lines = data.split(b"\n")
        for start, stop in pairwise([*starts, len(sentences)]):
            text = " ".join(sentences[start:stop])
            words = count_tokens_of_sentences(text, unspaced=unspaced)
            size = sum(map(len, lines[start:stop])) + stop - start
            self._paragraphs.append((*_hash(text.casefold().encode()), stop - start, words, size))
        self._texts.write(data)
        line = {**facts, "paragraphs": starts}
        self._facts.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        return len(data)

    def finish(self) -> list[Path]:
        """Write the files of the part and return their paths."""
        files = {
            ".txt.zst": self._texts.finish(),
            ".jsonl.zst": self._facts.finish(),
            DOCUMENTS: _array_bytes(np.array(self._documents, DOCUMENT)),
            PARAGRAPHS: _array_bytes(np.array(self._paragraphs, PARAGRAPH)),
        }
        for suffix, data in files.items():
            # No fsync: a part damaged by a crash does not match the hashes in its note and is built again.
            write_atomic(self._path.with_suffix(suffix), data, sync=False)
        return [self._path.with_suffix(suffix) for suffix in files]


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write `array`, of any shape, atomically as an `.npy` file, with the note of `core.task_records` next to it."""
    write_atomic(path, _array_bytes(array), sync=False)
    mark_done(path.with_suffix(".json"), [path])


def is_written(path: Path) -> bool:
    """Whether `write_array` wrote this array and the file is unchanged."""
    return is_done(path.with_suffix(".json"))


def read_array(path: Path) -> NDArray[Any]:
    """Read an `.npy` file of any shape and dtype; I/O errors name the file."""
    array: NDArray[Any] = np.load(io.BytesIO(read_bytes(path)))
    return array


def map_array(path: Path) -> NDArray[Any]:
    """Memory-map an `.npy` file of any shape and dtype, so that only the parts used are read."""
    with naming(path):
        array: NDArray[Any] = np.load(path, mmap_mode="r")
    return array


def unpack(path: Path) -> bytes:
    """The decompressed content of a file of a part."""
    return zstandard.ZstdDecompressor().decompressobj().decompress(read_bytes(path))


def _array_bytes(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    # Object arrays would be stored as pickles, which can execute arbitrary code when loaded.
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _hash(data: bytes) -> tuple[int, int]:
    # 128 bits: the probability that any two of a billion texts share a hash is 1.5e-21.
    high, low = _HALVES.unpack(hashlib.blake2b(data, digest_size=16).digest())
    return high, low


class _Compressed:
    """Compresses bytes incrementally into one zstd frame."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=1).compressobj()
        self._done: list[bytes] = []

    def write(self, data: bytes) -> None:
        self._done.append(self._compressor.compress(data))

    def finish(self) -> bytes:
        return b"".join([*self._done, self._compressor.flush()])
