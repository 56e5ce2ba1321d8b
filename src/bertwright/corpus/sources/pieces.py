"""Cutting a source into pieces of whole pages (or documents) that can be read independently.

Plain files are cut at the first page or blank line after every 8 MiB, multistream bz2 at stream starts; neither
needs the pieces before it. What can only be decoded from its beginning (xz, single-stream bz2, UTF-16) is decoded
once and set down in pieces, a few at a time. The cuts are a function of the file alone, and what a piece becomes
does not depend on them, so the final corpus is the same for every packaging of the same dump.
"""

from __future__ import annotations

import itertools
import mmap
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import zstandard

from bertwright.core.files import write_atomic
from bertwright.corpus.errors import MAX_DOCUMENT, SourceError, too_long
from bertwright.corpus.sources.dump import END, PAGE
from bertwright.corpus.sources.file import BLOCK, Reader, Source

PLAIN_BYTES = 8 * 2**20
BZ2_BYTES = 2**18
_MOST_PIECES = 4096
_BLANK_LINE = re.compile(rb"\n[ \t\r]*\n")
_STREAM = re.compile(rb"BZh[1-9]1AY&SY")
_STREAMS_TRIED = 16


@dataclass(frozen=True)
class Piece:
    """Some whole pages of a source."""

    source: int
    index: int
    start: int
    """Where it begins: offset in the file for a range, in the decoded bytes for a spooled piece."""
    stop: int
    progress: int
    """Bytes of the file on disk that it stands for."""
    last: bool
    cut: bool = False
    """Whether its compressed data breaks off at its end."""
    spool: Path | None = None
    """The file of decoded bytes, where the source could only be decoded from its beginning."""

    @property
    def name(self) -> str:
        """The name of its part, unique within the stage and sorting in source order."""
        return f"{self.source:04d}-{self.index:06d}"


def ranges(source: Source, number: int) -> list[Piece] | None:
    """The pieces of a file that can be read from many places at once; None where it cannot."""
    if source.encoding != "utf-8" or source.compression == "xz":
        return None
    if source.compression == "plain":
        cuts = _plain_cuts(source)
    else:
        cuts = _stream_cuts(source) if source.content == "dump" else []
        if not cuts:
            return None
    bounds = [0, *cuts, source.size]
    pairs = itertools.pairwise(bounds)
    return [Piece(number, i, a, b, b - a, last=b == source.size) for i, (a, b) in enumerate(pairs)]


def spooled(source: Source, number: int, folder: Path) -> Iterator[Piece]:
    """The pieces of a source decoded in one go, each written to `folder` before it is yielded.

    A piece whose part is already there is not written again.
    """
    reader = Reader(source)
    buffer, start, index, read, tried = bytearray(), 0, 0, 0, 0
    for block in reader:
        buffer += block
        if len(buffer) - tried < PLAIN_BYTES:
            continue
        tried = len(buffer)
        cut = _last_cut(source, buffer)
        if cut:
            piece = Piece(number, index, start, start + cut, reader.position - read, last=False)
            yield _spool(piece, buffer[:cut], folder)
            del buffer[:cut]
            start, index, read, tried = start + cut, index + 1, reader.position, len(buffer)
        elif tried > 2 * MAX_DOCUMENT:
            raise too_long(source.path, start)
    piece = Piece(number, index, start, start + len(buffer), reader.position - read, last=True, cut=reader.cut)
    yield _spool(piece, buffer, folder)


def read(source: Source, piece: Piece) -> Iterator[bytes]:
    """The UTF-8 bytes of a piece."""
    if piece.spool is None:
        reader = Reader(source, piece.start, piece.stop)
        yield from reader
        if reader.cut and not piece.last:
            raise SourceError(f"{source.path} is damaged: a stream has no end before byte {piece.stop:,}. Download it.")
        return
    with piece.spool.open("rb") as handle, zstandard.ZstdDecompressor().stream_reader(handle) as stream:
        while block := stream.read(BLOCK):
            yield block


def _spool(piece: Piece, data: bytearray, folder: Path) -> Piece:
    path = folder / f"{piece.name}.piece.zst"
    if not (folder / f"{piece.name}.json").is_file():
        write_atomic(path, zstandard.ZstdCompressor(level=1).compress(bytes(data)))
    return replace(piece, spool=path)


def _last_cut(source: Source, buffer: bytearray) -> int:
    if source.content == "dump":
        return max(0, buffer.rfind(PAGE))
    end = 0
    for match in _BLANK_LINE.finditer(buffer):
        end = match.end()
    return end


def _plain_cuts(source: Source) -> list[int]:
    """Offsets of the first page (or document) after every `step` bytes."""
    step = max(PLAIN_BYTES, source.size // _MOST_PIECES)
    cuts: list[int] = []
    with source.path.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = step
        while at < len(data):
            if source.content == "dump":
                at = data.find(PAGE, at)
            else:
                match = _BLANK_LINE.search(data, at)
                at = match.end() if match else -1
            if not 0 < at < len(data):
                break
            cuts.append(at)
            at += step
    return cuts


def _stream_cuts(source: Source) -> list[int]:
    """Offsets of bz2 streams, at least `BZ2_BYTES` apart; [] where the streams tried do not begin with a page."""
    with source.path.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as data:
        starts = [match.start() for match in _STREAM.finditer(data)]
    step = max(BZ2_BYTES, source.size // _MOST_PIECES)
    cuts: list[int] = []
    for start in starts[1:]:
        if start - (cuts[-1] if cuts else 0) >= step and source.size - start >= step // 2:
            cuts.append(start)
    tried = cuts[:: max(1, len(cuts) // _STREAMS_TRIED)]
    return cuts if all(_begins_with_page(source, start) for start in tried) else []


def _begins_with_page(source: Source, start: int) -> bool:
    for block in Reader(source, start):
        if text := block.lstrip():
            return text.startswith((PAGE, END))
    return False
