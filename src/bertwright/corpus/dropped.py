"""Dropped documents, saved with the reason: `dropped/00000.jsonl.zst` of a corpus, in corpus order.

Each line is JSON: {"reason": a name in `filter.REASONS` or a reason of the de-duplication, the same metadata as in the
side-car of a kept document, "text": the sentences joined by newlines}. Documents dropped by extraction are stored next
to their part until `gather_dropped` merges them with those dropped by de-duplication. A file ends with the line that
brings it to `FILE_BYTES`, so the output depends neither on the pieces of the sources nor on the number of workers.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import merge
from operator import itemgetter
from pathlib import Path
from typing import Any

import zstandard

from bertwright.core.artifact import Artifact
from bertwright.core.files import make_folder, naming, read_bytes, write_atomic

FOLDER = "dropped/"
FILE_BYTES = 16 * 2**20
"""Uncompressed size at which a file is full, in bytes."""
_WAITING = ".dropped.jsonl.zst"
_LEVEL = 3


def dropped_line(reason: str, facts: Mapping[str, Any], text: str) -> bytes:
    """The line of one dropped document; `text` is its sentences joined by newlines."""
    line = {"reason": reason, **facts, "text": text}
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


class DroppedWriter:
    """Collects the documents that extraction drops from one part; `finish` writes them next to the part."""

    def __init__(self, part: Path) -> None:
        self._path, self._lines = part.with_suffix(_WAITING), list[bytes]()

    def add(self, row: int, line: bytes) -> None:
        """Add the line of a document that was dropped after `row` documents of the part were kept."""
        self._lines.append(b"%d\t%b" % (row, line))

    def finish(self) -> Path:
        """Write the file and return its path."""
        # A temporary file, removed with the draft: fast compression and no fsync.
        write_atomic(self._path, zstandard.ZstdCompressor(level=1).compress(b"".join(self._lines)), sync=False)
        return self._path


def gather_dropped(parts: Iterable[Path], folder: Path, later: Callable[[Path], Iterable[tuple[int, bytes]]]) -> None:
    """Write the dropped documents of all parts, in corpus order, into `folder`, with one part in memory at a time.

    `later(part)` yields (row, line) for the documents of a part that extraction kept and de-duplication dropped, in
    ascending order of rows.
    """
    lines, size, number = list[bytes](), 0, 0
    for line in _lines(parts, later):
        lines.append(line)
        size += len(line)
        if size >= FILE_BYTES:
            _write(folder, number, lines)
            lines, size, number = [], 0, number + 1
    if lines:
        _write(folder, number, lines)


def read_dropped(corpus: Artifact) -> Iterator[dict[str, Any]]:
    """Yield the dropped documents of a corpus in order; nothing where `corpus.filter.keep_dropped` was off."""
    for name in corpus.names(FOLDER):
        with naming(corpus.path / name), corpus.file(name).open("rb") as handle:
            stream = zstandard.ZstdDecompressor().stream_reader(handle)
            yield from map(json.loads, io.TextIOWrapper(stream, encoding="utf-8", newline="\n"))


def _lines(parts: Iterable[Path], later: Callable[[Path], Iterable[tuple[int, bytes]]]) -> Iterator[bytes]:
    for part in parts:
        packed = read_bytes(part.with_suffix(_WAITING))
        waiting = zstandard.ZstdDecompressor().decompressobj().decompress(packed).split(b"\n")[:-1]
        early = ((int(row), line + b"\n") for row, _, line in (entry.partition(b"\t") for entry in waiting))
        # Both are sorted by row. A document dropped after k kept ones comes before row k, so this is the source order.
        yield from map(itemgetter(1), merge(early, later(part), key=itemgetter(0)))


def _write(folder: Path, number: int, lines: list[bytes]) -> None:
    packed = zstandard.ZstdCompressor(level=_LEVEL).compress(b"".join(lines))
    write_atomic(make_folder(folder) / f"{number:05d}.jsonl.zst", packed)
