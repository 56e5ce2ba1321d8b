"""The package zstandard, loaded where there is zstd data: machines that train on data made elsewhere need not have
it.

Streaming decompression of bz2, gz, xz and zstd files in blocks of bounded size, including files of many streams.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from bertwright.core.errors import missing_package_error
from bertwright.corpus.errors import DamagedStreamError, SourceError


def zstandard() -> Any:
    """The package. Raises `MissingExtraError` if it is not installed."""
    try:
        import zstandard
    except ModuleNotFoundError as error:
        if (missing := missing_package_error(error)) is None:
            raise
        raise missing from error
    return zstandard


Compression = Literal["plain", "bz2", "gz", "xz", "zst"]
MAGIC: dict[Compression, bytes] = {
    "bz2": rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90|$)",
    "gz": rb"\x1f\x8b\x08",
    "xz": rb"\xfd7zXZ\x00",
    # The second form is a skippable frame (RFC 8878 §3.1.2), which some programs write first.
    "zst": rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18",
}
"""Regular expressions that match the first 16 bytes of a file."""
# A few bytes at the head of a malicious xz or zst file can request gigabytes of memory.
_MEMORY = 512 * 2**20
_WINDOW = 128 * 2**20
# Compressed bytes passed to a decoder at once. With gz and zst, whose decoders cannot limit their output, they expand
# to at most 128 MiB. With many small streams, the data after the end of each is not copied repeatedly.
_SIP = 4096
# Each stream needs a decoder of its own: megabytes of streams without content, of ten bytes each, take minutes.
_MOST_EMPTY = 10_000
_DAMAGE: tuple[type[Exception], ...] = (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error)


class Decoder:
    """Decodes compressed blocks into blocks of at most `size` bytes (bz2, xz) or the output of 4 KiB (gz, zst)."""

    def __init__(self, path: Path, compression: Compression, size: int, start: int = 0) -> None:
        self.cut = False
        """After the iteration: whether the data ended too early."""
        self._path, self._compression, self._size, self._start = path, compression, size, start
        self._damage = _DAMAGE if compression != "zst" else (*_DAMAGE, zstandard().ZstdError)

    def blocks(self, compressed: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the decoded bytes. Raises `SourceError` where the data are damaged or hold too many empty streams."""
        decoder, done, empty = self._new(), self._start, 0
        for block in compressed:
            for sip in (block[start : start + _SIP] for start in range(0, len(block), _SIP)):
                rest = sip
                done += len(sip)
                # Zeros between and after streams are padding, which gzip ignores as well.
                while rest := rest.lstrip(b"\0") if decoder.eof else rest:
                    if decoder.eof:
                        decoder, empty = self._new(), empty + 1
                    if empty > _MOST_EMPTY:
                        raise SourceError(
                            f"{self._path} has more than {_MOST_EMPTY:,} {self._compression} streams in a row without "
                            f"content before byte {done:,}, which no program writes. Give another file, or this text "
                            "without them."
                        )
                    try:
                        for part in self._decoded(decoder, rest):
                            empty = 0 if part else empty
                            yield part
                    except self._damage as error:
                        raise DamagedStreamError(
                            f"{self._path} is damaged before byte {done:,} ({error}). Download it again and "
                            "compare its checksum with the one published beside it."
                        ) from error
                    rest = decoder.unused_data if decoder.eof else b""
        self.cut = not decoder.eof

    def _decoded(self, decoder: Any, sip: bytes) -> Iterator[bytes]:
        if self._compression in ("gz", "zst"):
            yield decoder.decompress(sip)
            return
        yield decoder.decompress(sip, self._size)
        while not decoder.eof and not decoder.needs_input:
            yield decoder.decompress(b"", self._size)

    def _new(self) -> Any:
        match self._compression:
            case "bz2":
                return bz2.BZ2Decompressor()
            case "gz":
                # 16 + 15: a gzip header is required, and any window size is accepted.
                return zlib.decompressobj(wbits=31)
            case "xz":
                return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY)
        return zstandard().ZstdDecompressor(max_window_size=_WINDOW).decompressobj()
