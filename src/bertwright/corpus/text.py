"""Reading a corpus: what the stages after it need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import zstandard

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.files import naming
from bertwright.corpus.errors import MAX_DOCUMENT

SHARDS = "shards/"
TEXT, FACTS = ".txt.zst", ".jsonl.zst"
"""A shard's sentences, and its side-car: one line of JSON says what is known of a document (title, url, ...)."""
MAX_TEXT = 4 * MAX_DOCUMENT
"""Most bytes of a document in a shard; normalisation makes at most three bytes of one."""
# Compressed bytes unpacked at once; at most 128 MiB comes of them.
_SIP = 4096


def shard_names(artifact: Artifact) -> list[str]:
    """The names of the text shards, in corpus order."""
    return [name for name in artifact.names(SHARDS) if name.endswith(TEXT)]


def read_documents(artifact: Artifact, shard_name: str) -> Iterator[list[str]]:
    """The documents of one shard, each a list of its sentences."""
    return documents_in(artifact.file(shard_name))


def documents_in(shard: Path) -> Iterator[list[str]]:
    """The documents of a shard's file; the last needs no blank line after it.

    What is no UTF-8 in zstd, or has a document of more than `MAX_TEXT` bytes, is an `ArtifactError` that names it.
    """
    try:
        for document in _raw_documents(shard):
            yield document.decode().split("\n")
    # A hash that fits says only that the file is as somebody sealed it.
    except (UnicodeDecodeError, zstandard.ZstdError) as error:
        raise _damaged(shard, str(error)) from error


def _raw_documents(shard: Path) -> Iterator[bytes]:
    buffer, stream = bytearray(), zstandard.ZstdDecompressor().decompressobj()
    with naming(shard), shard.open("rb") as handle:
        while sip := handle.read(_SIP):
            searched = max(0, len(buffer) - 1)  # a blank line may have begun before
            buffer += stream.decompress(sip)
            if buffer.find(b"\n\n", searched) >= 0:
                *documents, rest = bytes(buffer).split(b"\n\n")
                yield from documents
                buffer = bytearray(rest)
            elif len(buffer) > MAX_TEXT:
                raise _damaged(shard, f"a document has more than {MAX_TEXT:,} bytes")
    if not stream.eof or stream.unused_data:
        raise _damaged(shard, "its compressed text does not end with the file")
    # The original dropped the last article where no blank line followed it (tests/regressions).
    if buffer:
        yield bytes(buffer).removesuffix(b"\n")


def _damaged(shard: Path, what: str) -> ArtifactError:
    return ArtifactError(f"{shard} is damaged: {what}. Restore the file, or build its stage again.")


def sentences(artifact: Artifact) -> Iterator[str]:
    """Every sentence of the corpus, in order."""
    for name in shard_names(artifact):
        for document in read_documents(artifact, name):
            yield from document
