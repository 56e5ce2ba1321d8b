"""Dropped documents, set aside with the reason: `dropped/00000.jsonl.zst` of a corpus, in corpus order.

A line is JSON: {"reason": a name in `filter.REASONS` or of the de-duplication, the facts of a kept document's side-car,
"text": the sentences joined by newlines}. What extraction drops waits beside its part; `gather_dropped` puts it
together with what de-duplication drops later. A file ends with the line that brings it to `FILE_BYTES`, so neither the
pieces of the sources nor the number of workers leaves a trace.
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
"""Uncompressed bytes after which a file is full."""
_WAITING = ".dropped.jsonl.zst"
_LEVEL = 3


def dropped_line(reason: str, facts: Mapping[str, Any], text: str) -> bytes:
    """The line of one dropped document; `text` is its sentences joined by newlines."""
    line = {"reason": reason, **facts, "text": text}
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


class DroppedWriter:
    """Gathers what extraction drops from one part; `finish` writes it beside the part."""

    def __init__(self, part: Path) -> None:
        self._path, self._lines = part.with_suffix(_WAITING), list[bytes]()

    def add(self, row: int, line: bytes) -> None:
        """A document dropped after `row` documents of the part were kept."""
        self._lines.append(b"%d\t%b" % (row, line))

    def finish(self) -> Path:
        """Write the file; returns its path."""
        # Removed with the draft, so it is packed lightly and the disk is not waited for.
        write_atomic(self._path, zstandard.ZstdCompressor(level=1).compress(b"".join(self._lines)), sync=False)
        return self._path


def gather_dropped(parts: Iterable[Path], folder: Path, later: Callable[[Path], Iterable[tuple[int, bytes]]]) -> None:
    """Write the dropped documents of all parts, in corpus order, into `folder`; holds one part at a time.

    `later(part)` gives (row, line) of the documents of a part that extraction kept and de-duplication dropped, by
    rising row.
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
    """The dropped documents of a corpus in order; none where `corpus.filter.keep_dropped` was off."""
    for name in corpus.names(FOLDER):
        with naming(corpus.path / name), corpus.file(name).open("rb") as handle:
            stream = zstandard.ZstdDecompressor().stream_reader(handle)
            yield from map(json.loads, io.TextIOWrapper(stream, encoding="utf-8", newline="\n"))


def _lines(parts: Iterable[Path], later: Callable[[Path], Iterable[tuple[int, bytes]]]) -> Iterator[bytes]:
    for part in parts:
        packed = read_bytes(part.with_suffix(_WAITING))
        waiting = zstandard.ZstdDecompressor().decompressobj().decompress(packed).split(b"\n")[:-1]
        early = ((int(row), line + b"\n") for row, _, line in (entry.partition(b"\t") for entry in waiting))
        # Both rise by row: what extraction dropped after k kept documents comes before row k, so the order is the
        # source's.
        yield from map(itemgetter(1), merge(early, later(part), key=itemgetter(0)))


def _write(folder: Path, number: int, lines: list[bytes]) -> None:
    packed = zstandard.ZstdCompressor(level=_LEVEL).compress(b"".join(lines))
    write_atomic(make_folder(folder) / f"{number:05d}.jsonl.zst", packed)
