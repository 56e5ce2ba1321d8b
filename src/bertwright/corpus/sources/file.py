"""A file of a source, and its bytes as UTF-8, whatever its compression and encoding.

A file that simply ends too early (an interrupted download) is read as far as it goes and marked `cut`; a file damaged
in its middle is an error.
"""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bertwright.core.files import naming
from bertwright.corpus.config import SourceKind
from bertwright.corpus.errors import bad_encoding
from bertwright.corpus.sources.compression import Compression, Decoder

BLOCK = 2**20
# Asked at every start: a whole dump of 25 GB would take half a minute (decision 0009).
_WHOLE = 4 * 2**20


@dataclass(frozen=True)
class File:
    """Where a file lies and how its bytes are to be understood."""

    path: Path
    format: SourceKind
    compression: Compression = "plain"
    encoding: Literal["utf-8", "utf-16"] = "utf-8"

    @property
    def size(self) -> int:
        """Bytes of the file as it lies on disk."""
        return self.path.stat().st_size


class Reader:
    """The bytes of a file as UTF-8, from `start` to `stop` (offsets in the file as it lies on disk).

    Blocks of bz2 and xz files have at most `size` bytes: who wants the head alone is spared most of the decoding. After
    the iteration `cut` says that the compressed data ended too early, `position` how far the file was read.
    """

    def __init__(self, file: File, start: int = 0, stop: int | None = None, size: int = BLOCK) -> None:
        self.position, self.cut = start, False
        self._size = size
        self._file, self._stop = file, file.size if stop is None else stop

    def __iter__(self) -> Iterator[bytes]:
        blocks = self._blocks()
        if self._file.compression != "plain":
            blocks = self._decompressed(blocks)
        return self._utf8(blocks) if self._file.encoding == "utf-16" else blocks

    def _blocks(self) -> Iterator[bytes]:
        with naming(self._file.path), self._file.path.open("rb") as handle:
            handle.seek(self.position)
            while self.position < self._stop and (block := handle.read(min(BLOCK, self._stop - self.position))):
                self.position += len(block)
                yield block

    def _decompressed(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        decoder = Decoder(self._file.path, self._file.compression, self._size)
        yield from decoder.blocks(blocks)
        self.cut = decoder.cut

    def _utf8(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        decoder, done = codecs.getincrementaldecoder("utf-16")(), 0
        for block in blocks:
            try:
                yield decoder.decode(block).encode()
            except UnicodeError as error:
                offset = done + getattr(error, "start", 0)
                raise bad_encoding(self._file.path, offset, "UTF-16") from error
            done += len(block)
        # A byte without its partner, or half of a surrogate pair, is what a cut UTF-16 file ends with.
        self.cut = self.cut or bool(decoder.getstate()[0])


def sampled_hash(path: Path, count: int = 64) -> str:
    """SHA-256 over the size and the content of a file up to 4 MiB, over `count` even blocks of 64 KiB of a larger one.

    The quick identity of a file: a moment for a dump of any size, asked at every start. A change of a larger file
    that keeps its size and lies between the blocks goes unnoticed here; the manifest has the hash of the whole file.
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
