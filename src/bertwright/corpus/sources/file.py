"""A source file: what it is (by its content, not its name) and its bytes as UTF-8.

Plain, bz2 and xz files are read, in UTF-8 or in UTF-16 with a byte-order mark; anything else is refused with the
reason. A file that simply ends too early (an interrupted download) is read as far as it goes and marked `cut`;
a file damaged in its middle is an error.
"""

from __future__ import annotations

import bz2
import codecs
import hashlib
import lzma
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from bertwright.corpus.errors import SourceError, bad_encoding

BLOCK = 2**20
_XZ_MEMORY = 512 * 2**20
_FOREIGN = {
    b"\x1f\x8b": "gzip",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"PK\x03\x04": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
}
_HTML = re.compile(rb"<!doctype\s+html|<html[\s>]", re.IGNORECASE)
# Possessive throughout: a file made to look almost like XML must not cost more than its length.
_ROOT = re.compile(rb"(?:<\?(?:(?!\?>).)*+\?>|<!--(?:(?!-->).)*+-->|\s++)*+<([A-Za-z!][^\s>/]*)", re.DOTALL)


@dataclass(frozen=True)
class Source:
    """A readable source: where it lies and how its bytes are to be understood."""

    path: Path
    compression: Literal["plain", "bz2", "xz"]
    encoding: Literal["utf-8", "utf-16"]
    content: Literal["dump", "text"]

    @property
    def size(self) -> int:
        """Bytes of the file as it lies on disk."""
        return self.path.stat().st_size


class Reader:
    """The bytes of a source as UTF-8, from `start` to `stop` (offsets in the file as it lies on disk).

    After the iteration `cut` says that the compressed data ended too early, `position` how far the file was read.
    """

    def __init__(self, source: Source, start: int = 0, stop: int | None = None) -> None:
        self.position, self.cut = start, False
        self._source, self._stop = source, source.size if stop is None else stop

    def __iter__(self) -> Iterator[bytes]:
        blocks = self._blocks()
        if self._source.compression != "plain":
            blocks = self._decompressed(blocks)
        return self._utf8(blocks) if self._source.encoding == "utf-16" else blocks

    def _blocks(self) -> Iterator[bytes]:
        with self._source.path.open("rb") as handle:
            handle.seek(self.position)
            while self.position < self._stop and (block := handle.read(min(BLOCK, self._stop - self.position))):
                self.position += len(block)
                yield block

    def _decompressed(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        decoder = self._decoder()
        for block in blocks:
            while block:
                if decoder.eof:
                    decoder = self._decoder()
                yield self._step(decoder, block)
                while not decoder.eof and not decoder.needs_input:
                    yield self._step(decoder, b"")
                block = decoder.unused_data.lstrip(b"\0") if decoder.eof else b""
        self.cut = not decoder.eof

    def _decoder(self) -> bz2.BZ2Decompressor | lzma.LZMADecompressor:
        if self._source.compression == "bz2":
            return bz2.BZ2Decompressor()
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)

    def _step(self, decoder: bz2.BZ2Decompressor | lzma.LZMADecompressor, block: bytes) -> bytes:
        try:
            return decoder.decompress(block, BLOCK)
        except (OSError, lzma.LZMAError, ValueError) as error:
            raise SourceError(
                f"{self._source.path} is damaged before byte {self.position:,} ({error}). Download it again and "
                "compare its checksum with the one published beside it."
            ) from error

    def _utf8(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        decoder, done = codecs.getincrementaldecoder("utf-16")(), 0
        for block in blocks:
            try:
                yield decoder.decode(block).encode()
            except UnicodeError as error:
                offset = done + getattr(error, "start", 0)
                raise bad_encoding(self._source.path, offset, "UTF-16") from error
            done += len(block)
        self.cut = self.cut or bool(decoder.getstate()[0])


def examine(path: Path) -> Source:
    """What the file at `path` is; `DataError` where it is missing, unreadable or nothing this stage can read."""
    try:
        with path.open("rb") as handle:
            magic = handle.read(16)
    except OSError as error:
        reason = error.strerror or str(error)
        raise SourceError(
            f"cannot read {path}: {reason}. Give corpus.sources.file the path of a dump you may read."
        ) from error
    if not magic:
        raise SourceError(f"{path} is empty (0 bytes). Download it again.")
    compression = _compression(path, magic)
    head = _head(Source(path, compression, "utf-8", "text"))
    if not head:
        raise SourceError(f"{path} is an empty {compression} file, or cut in its first block. Download it again.")
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise SourceError(f"{path} is UTF-32 (its byte-order mark says so at byte 0). Convert it to UTF-8 first.")
    wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    source = Source(path, compression, "utf-16" if wide else "utf-8", "text")
    return replace(source, content=_content(path, _head(source) if wide else head))


def sampled_hash(path: Path) -> str:
    """SHA-256 over the file's size and 64 evenly spaced blocks of 64 KiB (over all of it up to 4 MiB).

    The quick identity of a source: a moment for a dump of any size, asked at every start. A change of a larger file
    that keeps its size and lies between the blocks goes unnoticed here; the manifest has the hash of the whole file.
    """
    size, count, width = path.stat().st_size, 64, 65_536
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as handle:
        if size <= count * width:
            digest.update(handle.read())
        else:
            for i in range(count):
                handle.seek(i * (size - width) // (count - 1))
                digest.update(handle.read(width))
    return digest.hexdigest()


def _compression(path: Path, magic: bytes) -> Literal["plain", "bz2", "xz"]:
    for prefix, name in _FOREIGN.items():
        if magic.startswith(prefix):
            raise SourceError(f"{path} is a {name} file; plain, bz2 and xz can be read. Unpack it first.")
    if magic.startswith(b"\xfd7zXZ\x00"):
        return "xz"
    if re.match(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90|$)", magic):
        return "bz2"
    if path.suffix in (".bz2", ".xz"):
        looks = "an HTML page" if _HTML.search(magic) else f"something that begins with {magic[:12]!r}"
        raise SourceError(f"{path} is no {path.suffix[1:]} file but {looks}: the download failed. Download it again.")
    return "plain"


def _head(source: Source) -> bytes:
    head = b""
    for block in Reader(source):
        head += block
        if len(head) >= 4096:
            break
    return head


def _content(path: Path, head: bytes) -> Literal["dump", "text"]:
    head = head.removeprefix(codecs.BOM_UTF8)
    if _HTML.match(head.lstrip()):
        raise SourceError(f"{path} is an HTML page, not a dump: the download failed. Download it again.")
    root = _ROOT.match(head)
    name = root.group(1).decode(errors="replace") if root else ""
    if name == "mediawiki":
        return "dump"
    if name.startswith("!"):
        raise SourceError(f"{path} declares a document type (<{name}>). No MediaWiki export does; none is accepted.")
    if head.lstrip().startswith(b"<?xml") or ".xml" in path.suffixes:
        found = f"its root element is <{name}>" if name else "it does not begin with an element"
        raise SourceError(f"{path} is not a MediaWiki export: {found}, not <mediawiki>. Use a pages-articles dump.")
    if (offset := head.find(b"\0")) >= 0:
        raise SourceError(
            f"{path} is no text: byte {offset:,} is zero. Give a dump (.xml, .xml.bz2, .xml.xz) or UTF-8 text."
        )
    return "text"
