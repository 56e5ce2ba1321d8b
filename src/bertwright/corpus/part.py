"""A part: the kept documents of one piece, with the hash of each text.

A part is three files beside each other in the stage's folder of parts: the documents (`.txt.zst`), their facts
(`.jsonl.zst`) and one row of numbers per document (`.npy`). `.json` holds what was counted; it is written last,
so a part without it is made again.
"""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from bertwright.core.files import write_atomic

ROW = np.dtype([("high", "<u8"), ("low", "<u8"), ("bytes", "<i8"), ("sentences", "<i8"), ("words", "<i8")])
"""Per document: the two halves of its text's 128-bit hash, and its size with the blank line after it."""


class PartWriter:
    """Gathers the documents of one part; `finish` writes its files."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._texts, self._facts, self._rows = _Compressed(), _Compressed(), list[tuple[int, ...]]()

    def add(self, sentences: list[str], starts: list[int], facts: dict[str, Any]) -> None:
        """A kept document: its sentences, the indices of those that begin a paragraph, and its side-car line."""
        text = "\n".join(sentences)
        data = f"{text}\n\n".encode()
        digest = hashlib.blake2b(data, digest_size=16).digest()
        high, low = (int.from_bytes(half, "big") for half in (digest[:8], digest[8:]))
        self._rows.append((high, low, len(data), len(sentences), text.count(" ") + len(sentences)))
        self._texts.write(data)
        line = {**facts, "paragraphs": starts}
        self._facts.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    def finish(self) -> None:
        """Write the files of the part."""
        write_atomic(self._path.with_suffix(".txt.zst"), self._texts.finish())
        write_atomic(self._path.with_suffix(".jsonl.zst"), self._facts.finish())
        table = io.BytesIO()
        np.save(table, np.array(self._rows, ROW), allow_pickle=False)
        write_atomic(self._path.with_suffix(".npy"), table.getvalue())


class _Compressed:
    """Bytes on their way into one zstd frame."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=1).compressobj()
        self._done: list[bytes] = []

    def write(self, data: bytes) -> None:
        self._done.append(self._compressor.compress(data))

    def finish(self) -> bytes:
        return b"".join([*self._done, self._compressor.flush()])
