"""A file of a source, a reader of its bytes as UTF-8 for any supported compression and encoding, and its pieces.

A truncated file (an interrupted download) is read as far as it goes and marked `cut`; a file damaged in the middle is
an error. A worker gets a piece of a file, and everything needed to extract its articles (`ExtractJob`).
"""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.core.files import naming
from bertwright.corpus.config import CorpusConfig, SourceConfig
from bertwright.corpus.errors import SourceError
from bertwright.corpus.sources.compression import Compression, Decoder
from bertwright.corpus.sources.dump import Header
from bertwright.corpus.wikitext.site import Site
from bertwright.corpus.wikitext.templates import Table

BLOCK = 2**20
_TAR_BLOCK = 20 * 512
# Computed at every start: reading an entire dump of 25 GB would take half a minute (decision 0009).
_WHOLE = 4 * 2**20


@dataclass(frozen=True)
class File:
    """The path of a file, and how to decode its bytes."""

    path: Path
    format: str
    compression: Compression = "plain"
    encoding: str = "utf-8"
    """Of its text, by Python's name: UTF-8, UTF-16 with a byte-order mark, or what an HTML page declares."""
    is_tar: bool = False
    """Whether it is an archive, whose files are read one after the other."""

    @property
    def size(self) -> int:
        """Size of the file on disk, in bytes."""
        return self.path.stat().st_size

    @property
    def state(self) -> tuple[int, int]:
        """Its size and the time of its last change: what was read of it is still true while these are the same."""
        found = self.path.stat()
        return found.st_size, found.st_mtime_ns


class Reader:
    """Iterates over the bytes of a file as UTF-8, from `start` to `stop` (offsets in the file on disk).

    Blocks of bz2 and xz files have at most `size` bytes, so that callers who need only the head avoid most of the
    decoding. After the iteration, `cut` tells whether the data ended too early, and `position` how far the file was
    read.
    """

    def __init__(self, file: File, start: int = 0, stop: int | None = None, size: int = BLOCK) -> None:
        self.position, self.cut = start, False
        self._size = size
        self._file, self._stop = file, file.size if stop is None else stop

    def __iter__(self) -> Iterator[bytes]:
        blocks = self._blocks()
        if self._file.compression != "plain":
            blocks = self._decompressed(blocks)
        if self._file.is_tar:
            blocks = self._members(blocks)
        return blocks if self._file.encoding == "utf-8" else self._utf8(blocks)

    def _blocks(self) -> Iterator[bytes]:
        with naming(self._file.path), self._file.path.open("rb") as handle:
            handle.seek(self.position)
            while self.position < self._stop and (block := handle.read(min(BLOCK, self._stop - self.position))):
                self.position += len(block)
                yield block

    def _decompressed(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        decoder = Decoder(self._file.path, self._file.compression, self._size, self.position)
        yield from decoder.blocks(blocks)
        self.cut = decoder.cut

    def _members(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """The files of an archive, each with a line feed at its end; those whose names begin with "." or "_" are left
        out, as in a folder."""
        import tarfile

        try:
            stream: Any = _Stream(blocks)  # of what a file has, tarfile only needs `read`
            with tarfile.open(fileobj=stream, mode="r|", bufsize=_TAR_BLOCK) as archive:
                for member in archive:
                    if not member.isfile() or member.name.rpartition("/")[2].startswith((".", "_")):
                        continue
                    handle, last = archive.extractfile(member), b"\n"
                    while handle is not None and (block := handle.read(self._size)):
                        yield block
                        last = block[-1:]
                    if last != b"\n":
                        yield b"\n"
        except tarfile.ReadError as error:
            if "unexpected end of data" not in str(error):
                raise SourceError(f"{self._file.path} is a damaged archive ({error}). Download it again.") from error
            self.cut = True
        except (tarfile.TarError, ValueError) as error:
            raise SourceError(f"{self._file.path} is a damaged archive ({error}). Download it again.") from error

    def _utf8(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """What is no character becomes a byte that no UTF-8 text has, for its readers to count and replace."""
        errors = "surrogatepass" if self._file.encoding == "utf-16" else "surrogateescape"
        decoder = codecs.getincrementaldecoder(self._file.encoding)(errors)
        for block in blocks:
            yield decoder.decode(block).encode("utf-8", _INVALID)
        # A truncated UTF-16 file ends with a single byte or half a surrogate pair.
        self.cut = self.cut or bool(decoder.getstate()[0])


class _Stream:
    """Blocks as a file that can be read once, for `tarfile`."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._rest = blocks, bytearray()

    def read(self, size: int) -> bytes:
        """The next `size` bytes, fewer at the end."""
        while len(self._rest) < size and (block := next(self._blocks, b"")):
            self._rest += block
        taken = bytes(self._rest[:size])
        del self._rest[:size]
        return taken


def _as_invalid(error: UnicodeError) -> tuple[bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return b"\xff" * (error.end - error.start), error.end


_INVALID = "bertwright.invalid"
codecs.register_error(_INVALID, _as_invalid)


def sampled_hash(path: Path, count: int = 64) -> str:
    """SHA-256 of the size and the content of a file up to 4 MiB, or of `count` evenly spaced 64 KiB blocks of a larger
    one.

    This is the quick identity of a file, computed at every start in a moment for a dump of any size. A change to a
    larger file that keeps its size and lies between the blocks goes unnoticed; the manifest has the hash of the entire
    file.
    """
    size, width = path.stat().st_size, 65_536
    digest = hashlib.sha256(str(size).encode())
    with naming(path), path.open("rb") as handle:
        if size <= _WHOLE:
            digest.update(handle.read())
        else:
            for i in range(count):
                handle.seek(i * (size - width) // (count - 1))
                digest.update(handle.read(width))
    return digest.hexdigest()


@dataclass(frozen=True)
class Piece:
    """A range of complete documents of a file."""

    source: int
    index: int
    """Index of the piece among the pieces of all files of the source."""
    start: int
    """Where it begins: the offset in the file, or in the decoded bytes for a spooled piece; in a table the number of
    the first row (Parquet) or record batch (Arrow)."""
    stop: int
    progress: int
    """Bytes of the file on disk that it covers."""
    last: bool
    """Whether it is the last piece of the file."""
    cut: bool = False
    """Whether the compressed data are truncated at its end."""
    spool: Path | None = None
    """The file of decoded bytes, where the file could only be decoded from its beginning."""

    more: tuple[File, ...] = ()
    """Further files that it covers from beginning to end, where files are too small for a piece each."""

    copy: Path | None = None
    """The file of decoded bytes that the search for templates saved, so that they are not decoded twice."""

    books: bool = False
    """Whether it has not pages of the file but books assembled from them; in `spool`."""

    @property
    def name(self) -> str:
        """The name of its part, which is unique within the stage and sorts in source order."""
        return f"{self.source:04d}-{self.index:06d}"


@dataclass(frozen=True)
class ExtractJob:
    """A piece and everything needed to process it."""

    piece: Piece
    file: File
    header: Header
    """The header of the file, if it is a dump."""
    config: CorpusConfig
    source: SourceConfig
    parts: Path
    definitions: Path | None = None
    """The file of templates that the dumps of the source define, if they are to be expanded."""
    table: Table | None = None
    """The user's own templates."""

    @property
    def site(self) -> Site:
        """The wiki of its pages, if the file is a dump."""
        return self.header.site(self.config.language)

    @property
    def whole_lines(self) -> bool:
        """Whether each paragraph already is one sentence."""
        return self.source.lines == "sentences"

    @property
    def origin(self) -> dict[str, Any]:
        """The source and licence of its documents, for their side-car lines."""
        return {
            "source": self.source.name or self.header.database or self.file.format,
            "licence": self.source.licence or self.header.licence,
        }
