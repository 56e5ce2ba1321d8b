"""A part: the kept documents of one piece, with the hash of each text and of each paragraph.

A part is four files beside each other in the stage's folder of parts: the documents (`.txt.zst`), their facts
(`.jsonl.zst`), and a row of numbers for each document and for each paragraph (`.documents.npy`, `.paragraphs.npy`).
`.json` holds what was counted and the hashes of the others (`core.done`); it is written last, so a part without it is
made again.
"""

from __future__ import annotations

import hashlib
import io
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from bertwright.core.done import is_done, mark_done
from bertwright.core.files import naming, read_bytes, write_atomic
from bertwright.corpus.words import count_tokens_of_sentences

DOCUMENTS, PARAGRAPHS = ".documents.npy", ".paragraphs.npy"
HASH = [("high", "<u8"), ("low", "<u8")]
"""The two halves of a 128-bit hash."""
DOCUMENT = np.dtype([*HASH, ("paragraphs", "<i8")])
"""Per document: the hash of its text, and how many paragraphs it has."""
PARAGRAPH = np.dtype([*HASH, ("sentences", "<i4"), ("words", "<i4"), ("bytes", "<i4")])
"""Per paragraph: the hash of its text in small letters, and its size with the newline after each sentence."""


class PartWriter:
    """Gathers the documents of one part; `finish` writes its files."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._texts, self._facts = _Compressed(), _Compressed()
        self._documents, self._paragraphs = list[tuple[int, ...]](), list[tuple[int, ...]]()

    def add(self, sentences: list[str], starts: list[int], facts: dict[str, Any]) -> None:
        """A kept document: its sentences, the indices of those that begin a paragraph, and its side-car line."""
        data = ("\n".join(sentences) + "\n\n").encode()
        self._documents.append((*_hash(data), len(starts)))
        for start, stop in pairwise([*starts, len(sentences)]):
            text = " ".join(sentences[start:stop])
            words, size = count_tokens_of_sentences(text), len(text.encode()) + 1
            self._paragraphs.append((*_hash(text.casefold().encode()), stop - start, words, size))
        self._texts.write(data)
        line = {**facts, "paragraphs": starts}
        self._facts.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    def finish(self) -> list[Path]:
        """Write the files of the part; returns their paths."""
        files = {
            ".txt.zst": self._texts.finish(),
            ".jsonl.zst": self._facts.finish(),
            DOCUMENTS: _array_bytes(np.array(self._documents, DOCUMENT)),
            PARAGRAPHS: _array_bytes(np.array(self._paragraphs, PARAGRAPH)),
        }
        for suffix, data in files.items():
            # The disk is not waited for: a part that a crash damaged differs from the hashes in its note and is made
            # again.
            write_atomic(self._path.with_suffix(suffix), data, sync=False)
        return [self._path.with_suffix(suffix) for suffix in files]


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write `array`, of any shape, as an `.npy` file that is whole or absent, and beside it the note of `core.done`."""
    write_atomic(path, _array_bytes(array), sync=False)
    mark_done(path.with_suffix(".json"), [path])


def is_written(path: Path) -> bool:
    """Whether `write_array` wrote this array, and it is as it was then."""
    return is_done(path.with_suffix(".json"))


def read_array(path: Path) -> NDArray[Any]:
    """An `.npy` file, of any shape and type; the disk's errors name it."""
    array: NDArray[Any] = np.load(io.BytesIO(read_bytes(path)))
    return array


def map_array(path: Path) -> NDArray[Any]:
    """An `.npy` file, of any shape and type, of which only what is used is read."""
    with naming(path):
        array: NDArray[Any] = np.load(path, mmap_mode="r")
    return array


def unpacked(path: Path) -> bytes:
    """What a compressed file of a part holds."""
    return zstandard.ZstdDecompressor().decompressobj().decompress(read_bytes(path))


def _array_bytes(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    # Arrays of objects would be pickles, which run code of whoever wrote them.
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _hash(data: bytes) -> tuple[int, int]:
    # 128 bits: that any two of a thousand million texts share a hash has probability 1.5e-21.
    digest = hashlib.blake2b(data, digest_size=16).digest()
    return int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")


class _Compressed:
    """Bytes on their way into one zstd frame."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=1).compressobj()
        self._done: list[bytes] = []

    def write(self, data: bytes) -> None:
        self._done.append(self._compressor.compress(data))

    def finish(self) -> bytes:
        return b"".join([*self._done, self._compressor.flush()])
