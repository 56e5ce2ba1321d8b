"""Reading a corpus, for the stages after it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.files import naming, read_bytes
from bertwright.corpus.errors import MAX_DOCUMENT
from bertwright.corpus.sources.compression import zstandard

SHARDS = "shards/"
TEXT, FACTS = ".txt.zst", ".jsonl.zst"
"""A shard's sentences, and its side-car with one line of JSON metadata per document (title, url, ...)."""
MAX_TEXT = 4 * MAX_DOCUMENT
"""Largest size of a document in a shard, in bytes; normalisation makes at most three bytes of one."""
# Compressed bytes decompressed at once; they expand to at most 128 MiB.
_SIP = 4096


def shard_names(artifact: Artifact) -> list[str]:
    """The names of the text shards, in corpus order."""
    return [name for name in artifact.names(SHARDS) if name.endswith(TEXT)]


def read_documents(artifact: Artifact, shard_name: str) -> Iterator[list[str]]:
    """Iterate over the documents of one shard, each a list of its sentences."""
    return documents_in(artifact.file(shard_name))


def source_names(artifact: Artifact) -> list[str]:
    """The names of a corpus's sources, as the metadata of its documents have them, each once, in order."""
    stated = [str(source.get("name", "")) for source in artifact.manifest["config"]["corpus"]["source"]]
    found = artifact.counts["sources"]
    return list(
        dict.fromkeys(own or str(of["database"] or of["format"]) for own, of in zip(stated, found, strict=True))
    )


def read_sources(artifact: Artifact, shard_name: str) -> list[str]:
    """The name of the source of each document of one shard, in order."""
    path = artifact.file(facts_name(shard_name))
    try:
        data = zstandard().ZstdDecompressor().decompressobj().decompress(read_bytes(path))
        return [str(json.loads(line)["source"]) for line in data.splitlines()]
    except (ValueError, KeyError, TypeError, zstandard().ZstdError) as error:
        raise _damaged(path, str(error)) from error


def facts_name(shard_name: str) -> str:
    """The name of the metadata of a shard."""
    return shard_name.removesuffix(TEXT) + FACTS


def documents_in(shard: Path) -> Iterator[list[str]]:
    """Yield the documents of a shard's file; the last one needs no blank line after it.

    Raises `ArtifactError`, naming the file, if it is not zstd-compressed UTF-8 or a document exceeds `MAX_TEXT` bytes.
    """
    try:
        for document in _raw_documents(shard):
            yield document.decode().split("\n")
    # A matching hash only shows that the file is unchanged since it was sealed, not that it was valid.
    except (UnicodeDecodeError, zstandard().ZstdError) as error:
        raise _damaged(shard, str(error)) from error


def _raw_documents(shard: Path) -> Iterator[bytes]:
    buffer, stream = bytearray(), zstandard().ZstdDecompressor().decompressobj()
    with naming(shard), shard.open("rb") as handle:
        while sip := handle.read(_SIP):
            searched = max(0, len(buffer) - 1)  # a blank line may begin at the end of the previous read
            buffer += stream.decompress(sip)
            if buffer.find(b"\n\n", searched) >= 0:
                *documents, rest = bytes(buffer).split(b"\n\n")
                yield from documents
                buffer = bytearray(rest)
            elif len(buffer) > MAX_TEXT:
                raise _damaged(shard, f"a document has more than {MAX_TEXT:,} bytes")
    if not stream.eof or stream.unused_data:
        raise _damaged(shard, "the compressed text is incomplete, or other bytes follow it")
    # The original program dropped the last article where no blank line followed it (tests/regressions).
    if buffer:
        yield bytes(buffer).removesuffix(b"\n")


def _damaged(shard: Path, what: str) -> ArtifactError:
    return ArtifactError(f"{shard} is damaged: {what}. Restore the file, or run its stage again.")


def sentences(artifact: Artifact) -> Iterator[str]:
    """Yield every sentence of the corpus, in order."""
    for name in shard_names(artifact):
        for document in read_documents(artifact, name):
            yield from document
