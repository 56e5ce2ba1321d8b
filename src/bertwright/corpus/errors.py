"""Errors of sources, with the same wording wherever they are detected."""

from __future__ import annotations

from pathlib import Path

from bertwright.core.errors import DataError

MAX_DOCUMENT = 32 * 2**20
"""Largest size of one page or text document, in bytes; MediaWiki itself limits wikitext to 2 MiB."""


class SourceError(DataError):
    """The source cannot be used, so running the stage again would fail too; partial results are not worth keeping."""


class DamagedStreamError(SourceError):
    """Compressed data cannot be decoded from some place on."""


class NoCopyError(SourceError):
    """A remote source has no complete local copy yet; the network was not accessed."""


def bad_encoding(path: Path, offset: int, expected: str = "UTF-8", after: str = "") -> SourceError:
    """The error for bytes that are not valid in the expected encoding; `offset` counts decompressed bytes."""
    return SourceError(
        f"{path} is not valid {expected} at byte {offset:,} of its text{after}. The program reads UTF-8, and UTF-16 "
        "with a byte-order mark. Convert the file first, e.g. with `iconv -f ISO-8859-2 -t UTF-8`."
    )


def too_long(path: Path, start: int) -> SourceError:
    """The error for a page or document that does not end; `start` counts decompressed bytes."""
    return SourceError(
        f"{path}: no page or document ends within {MAX_DOCUMENT:,} bytes after byte {start:,} of its text. Use a "
        "dump with the last revisions only (pages-articles); in plain text, separate the documents by blank lines."
    )


def damaged(path: Path, data: bytes, offset: int, error: Exception, after: str = "") -> SourceError:
    """The error for XML that expat rejects; names the place where `data`, which begins at `offset`, is not UTF-8."""
    # Expat reports such bytes as an invalid token, which does not help users; the offset and the encoding do.
    try:
        data.decode()
    except UnicodeDecodeError as wrong:
        return bad_encoding(path, offset + wrong.start, after=after)
    return SourceError(
        f"{path} is damaged: {error}. Download it again and compare its checksum with the published one."
    )
