"""Cutting a text file into pieces of whole documents that can be read independently.

Plain files are cut at the first boundary of documents after every 8 MiB, multistream bz2 dumps at stream starts;
neither needs the pieces before it. What can only be decoded from its beginning (other compressed files, UTF-16) is
decoded once and set down in pieces, a few ahead of the work. The cuts are a function of the file alone, and what a
piece becomes does not depend on them, so the final corpus is the same for every packaging of the same text.
"""

from __future__ import annotations

import itertools
import mmap
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import zstandard

from bertwright.core.done import is_done
from bertwright.core.files import naming, write_atomic
from bertwright.core.work_split import SINGLE, WorkSplit
from bertwright.corpus.errors import MAX_DOCUMENT, SourceError, too_long
from bertwright.corpus.sources.file import BLOCK, File, Reader
from bertwright.corpus.sources.job import Piece

PLAIN_BYTES = 8 * 2**20
BZ2_BYTES = 2**18
_MOST_PIECES = 4096
_STREAM = re.compile(rb"BZh[1-9]1AY&SY")
_HEAD = 2**12


def text_pieces(
    file: File, boundary: re.Pattern[bytes], source: int, first: int, folder: Path, share: WorkSplit = SINGLE
) -> Iterator[Piece]:
    """The pieces of a file, numbered from `first` in the source of this number; documents end where `boundary` does."""
    cuts = bounds(file, boundary)
    yield from between(cuts, source, first) if cuts else spooled(file, boundary, source, first, folder, share)


def between(cuts: Sequence[int], source: int, first: int) -> Iterator[Piece]:
    """The pieces of a file that begins, is cut and ends at these `bounds`."""
    for i, (start, stop) in enumerate(itertools.pairwise(cuts)):
        yield Piece(source, first + i, start, stop, stop - start, last=stop == cuts[-1])


def spooled(
    file: File, boundary: re.Pattern[bytes], source: int, first: int, folder: Path, share: WorkSplit = SINGLE
) -> Iterator[Piece]:
    """The pieces of a file that is decoded in one go: each is written to `folder` before it is yielded.

    Not the pieces of another rank, nor those whose part is already there. A later attempt decodes the file again, so
    what is written is not waited for.
    """
    for piece, data in _decoded(file, boundary, source, first):
        path = folder / f"{piece.name}.piece.zst"
        # Decoding cannot be shared out: every rank decodes the whole and writes down what is its own.
        if share.owns(source + piece.index) and not is_done(folder / f"{piece.name}.json"):
            write_atomic(path, zstandard.ZstdCompressor(level=1).compress(data), sync=False)
        yield replace(piece, spool=path)


def read(file: File, piece: Piece) -> Iterator[bytes]:
    """The UTF-8 bytes of a piece."""
    packed = piece.copy or piece.spool
    if packed is None:
        reader = Reader(file, piece.start, piece.stop)
        yield from reader
        if reader.cut and not piece.last:
            raise SourceError(f"{file.path} is damaged: a stream has no end before byte {piece.stop:,}. Download it.")
        return
    with (
        naming(packed),
        packed.open("rb") as handle,
        zstandard.ZstdDecompressor().stream_reader(handle) as stream,
    ):
        while block := stream.read(BLOCK):
            yield block


def _decoded(file: File, boundary: re.Pattern[bytes], source: int, first: int) -> Iterator[tuple[Piece, bytes]]:
    """The pieces of a file that is decoded in one go, each with its bytes."""
    reader = Reader(file)
    buffer, start, index, read = bytearray(), 0, first, 0
    due = enough = PLAIN_BYTES + PLAIN_BYTES // 8
    for block in reader:
        buffer += block
        while len(buffer) >= due:
            match = boundary.search(buffer, PLAIN_BYTES)
            if match is None:
                if len(buffer) > 2 * MAX_DOCUMENT:
                    raise too_long(file.path, start)
                # Else every block would search all that has no boundary again.
                due = len(buffer) + PLAIN_BYTES
                break
            cut = match.end()
            yield Piece(source, index, start, start + cut, reader.position - read, last=False), bytes(buffer[:cut])
            del buffer[:cut]
            start, index, read, due = start + cut, index + 1, reader.position, enough
    rest = Piece(source, index, start, start + len(buffer), reader.position - read, last=True, cut=reader.cut)
    yield rest, bytes(buffer)


def bounds(file: File, boundary: re.Pattern[bytes], streams: tuple[bytes, ...] = ()) -> list[int]:
    """Where the pieces of a file begin and end that can be read from many places at once; [] where it cannot.

    A bz2 file of many streams can, if these begin with one of `streams` after white space.
    """
    if file.encoding != "utf-8":
        return []
    if file.compression == "plain":
        return [0, *_plain_cuts(file, boundary), file.size]
    cuts = _stream_cuts(file, streams) if streams and file.compression == "bz2" else []
    return [0, *cuts, file.size] if cuts else []


def _plain_cuts(file: File, boundary: re.Pattern[bytes]) -> Iterator[int]:
    """Offsets of the first document after every `step` bytes."""
    step = max(PLAIN_BYTES, file.size // _MOST_PIECES)
    with file.path.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = step
        while at < len(data) and (match := boundary.search(data, at)) and match.end() < len(data):
            yield match.end()
            at = match.end() + step


def _stream_cuts(file: File, streams: tuple[bytes, ...]) -> list[int]:
    """Offsets of bz2 streams, at least `BZ2_BYTES` apart; [] where the streams tried begin with none of `streams`."""
    with file.path.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as data:
        starts = [match.start() for match in _STREAM.finditer(data)]
    step = max(BZ2_BYTES, file.size // _MOST_PIECES)
    cuts: list[int] = []
    for start in starts[1:]:
        # Streams of a dump hold a hundred pages, too few for a task.
        if start - (cuts[-1] if cuts else 0) >= step and file.size - start >= step // 2:
            cuts.append(start)
    tried = {cuts[0], cuts[-1]} if cuts else set()  # both, because decoding takes a moment
    return cuts if all(_begins_with(file, start, streams) for start in sorted(tried)) else []


def _begins_with(file: File, start: int, streams: tuple[bytes, ...]) -> bool:
    for block in Reader(file, start, size=_HEAD):
        if text := block.lstrip():
            return text.startswith(streams)
    return False
