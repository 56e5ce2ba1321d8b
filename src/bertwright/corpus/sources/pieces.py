"""Splitting a text file into pieces of complete documents that can be read independently.

Plain files are cut at the first document boundary after every 8 MiB, multistream bz2 dumps at stream starts; a piece
can be read without the pieces before it. Files that can only be decoded from their beginning (other compressed files,
UTF-16) are decoded once and written to disk in pieces, a few ahead of the work. The cuts depend only on the file, and
the result does not depend on the cuts, so the final corpus is the same for every packaging of the same text.
"""

from __future__ import annotations

import itertools
import mmap
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bertwright.core.files import naming, write_atomic
from bertwright.core.task_records import is_done
from bertwright.core.work_split import SINGLE, WorkSplit
from bertwright.corpus.errors import MAX_DOCUMENT, DamagedStreamError, SourceError, too_long
from bertwright.corpus.sources.compression import zstandard
from bertwright.corpus.sources.file import BLOCK, File, Piece, Reader

PLAIN_BYTES = 8 * 2**20
BZ2_BYTES = 2**18
_MOST_PIECES = 4096
_STREAM = re.compile(rb"BZh[1-9]1AY&SY")
_HEAD = 2**12


def between(cuts: Sequence[int], source: int, first: int) -> Iterator[Piece]:
    """Yield the pieces between consecutive offsets of `cuts`, as returned by `bounds`."""
    for i, (start, stop) in enumerate(itertools.pairwise(cuts)):
        yield Piece(source, first + i, start, stop, stop - start, last=stop == cuts[-1])


def spool(
    file: File, boundary: re.Pattern[bytes], source: int, first: int, folder: Path, share: WorkSplit = SINGLE
) -> Iterator[Piece]:
    """Yield the pieces of a file that can only be decoded sequentially, each after it is written to `folder`.

    Pieces of other ranks, and those whose part already exists, are not written. There is no fsync, because a later run
    decodes the file again.
    """
    for piece, data in _decoded(file, boundary, source, first):
        path = folder / f"{piece.name}.piece.zst"
        # Decoding cannot be distributed: every rank decodes the entire file and writes only its own pieces.
        if share.owns(source + piece.index) and not is_done(folder / f"{piece.name}.json"):
            write_atomic(path, zstandard().ZstdCompressor(level=1).compress(data), sync=False)
        yield replace(piece, spool=path)


def read(file: File, piece: Piece) -> Iterator[bytes]:
    """Yield the UTF-8 bytes of a piece in blocks."""
    packed = piece.copy or piece.spool
    if packed is None:
        reader = Reader(file, piece.start, piece.stop)
        yield from reader
        if reader.cut and not piece.last:
            raise SourceError(
                f"{file.path} is damaged: a stream has no end before byte {piece.stop:,}. Download it again."
            )
        return
    with (
        naming(packed),
        packed.open("rb") as handle,
        zstandard().ZstdDecompressor().stream_reader(handle) as stream,
    ):
        while block := stream.read(BLOCK):
            yield block


def _decoded(file: File, boundary: re.Pattern[bytes], source: int, first: int) -> Iterator[tuple[Piece, bytes]]:
    """Yield the pieces of a file that can only be decoded sequentially, each with its bytes."""
    reader = Reader(file)
    buffer, start, index, read = bytearray(), 0, first, 0
    due = enough = PLAIN_BYTES + PLAIN_BYTES // 8
    for block in _naming_place(reader, buffer):
        buffer += block
        while len(buffer) >= due:
            match = boundary.search(buffer, PLAIN_BYTES)
            if match is None:
                if len(buffer) > 2 * MAX_DOCUMENT:
                    raise too_long(file.path, start)
                # Otherwise each block would search all the data without a boundary again.
                due = len(buffer) + PLAIN_BYTES
                break
            cut = match.end()
            yield Piece(source, index, start, start + cut, reader.position - read, last=False), bytes(buffer[:cut])
            del buffer[:cut]
            start, index, read, due = start + cut, index + 1, reader.position, enough
    rest = Piece(source, index, start, start + len(buffer), reader.position - read, last=True, cut=reader.cut)
    yield rest, bytes(buffer)


def _naming_place(reader: Reader, buffer: bytearray) -> Iterator[bytes]:
    """Yield the blocks of a reader; an error of damaged data names the page in which it occurs, if `buffer`, what was
    read before, is of a dump."""
    try:
        yield from reader
    except DamagedStreamError as error:
        title = buffer[buffer.rfind(b"<title>") + 7 :].partition(b"</title>") if b"<title>" in buffer else None
        name = title[0].decode(errors="replace") if title and title[1] else ""
        raise DamagedStreamError(f"{error} That is in or after the page {name!r}." if name else str(error)) from error


def bounds(file: File, boundary: re.Pattern[bytes], streams: tuple[bytes, ...] = ()) -> list[int]:
    """The offsets at which the pieces of a file begin and end; [] if it cannot be read from several positions.

    This is possible for a bz2 file of many streams if they begin with one of `streams` after white space.
    """
    if file.encoding != "utf-8" or file.is_tar:
        return []
    if file.compression == "plain":
        return [0, *_plain_cuts(file, boundary), file.size]
    cuts = _stream_cuts(file, streams) if streams and file.compression == "bz2" else []
    return [0, *cuts, file.size] if cuts else []


def _plain_cuts(file: File, boundary: re.Pattern[bytes]) -> Iterator[int]:
    """Yield the offset of the first document boundary after every `step` bytes."""
    step = max(PLAIN_BYTES, file.size // _MOST_PIECES)
    with file.path.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = step
        while at < len(data) and (match := boundary.search(data, at)) and match.end() < len(data):
            yield match.end()
            at = match.end() + step


def _stream_cuts(file: File, streams: tuple[bytes, ...]) -> list[int]:
    """Offsets of bz2 streams, at least `BZ2_BYTES` apart; [] if a checked stream begins with none of `streams`."""
    with file.path.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as data:
        starts = [match.start() for match in _STREAM.finditer(data)]
    step = max(BZ2_BYTES, file.size // _MOST_PIECES)
    cuts: list[int] = []
    for start in starts[1:]:
        # A stream of a dump has a hundred pages, too few for a task.
        if start - (cuts[-1] if cuts else 0) >= step and file.size - start >= step // 2:
            cuts.append(start)
    tried = {cuts[0], cuts[-1]} if cuts else set()  # only these two, because decoding takes time
    return cuts if all(_begins_with(file, start, streams) for start in sorted(tried)) else []


def _begins_with(file: File, start: int, streams: tuple[bytes, ...]) -> bool:
    for block in Reader(file, start, size=_HEAD):
        if text := block.lstrip():
            return text.startswith(streams)
    return False
