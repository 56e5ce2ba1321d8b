"""Reading a corpus: what the stages after it need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import zstandard

from bertwright.core.artifact import Artifact
from bertwright.core.files import naming

SHARDS = "shards/"
TEXT, FACTS = ".txt.zst", ".jsonl.zst"
"""A shard's sentences, and its side-car: one line of JSON says what is known of a document (title, url, ...)."""
_BLOCK = 2**20


def shard_names(artifact: Artifact) -> list[str]:
    """The names of the text shards, in corpus order."""
    return [name for name in artifact.names(SHARDS) if name.endswith(TEXT)]


def read_documents(artifact: Artifact, shard_name: str) -> Iterator[list[str]]:
    """The documents of one shard, each a list of its sentences."""
    return documents_in(artifact.file(shard_name))


def documents_in(shard: Path) -> Iterator[list[str]]:
    """The documents of a shard's file; the last needs no blank line after it."""
    rest = b""
    with naming(shard), shard.open("rb") as handle, zstandard.ZstdDecompressor().stream_reader(handle) as stream:
        while block := stream.read(_BLOCK):
            *documents, rest = (rest + block).split(b"\n\n")
            for document in documents:
                yield document.decode().split("\n")
    # The original dropped the last article where no blank line followed it (tests/regressions).
    if rest:
        yield rest.decode().removesuffix("\n").split("\n")


def sentences(artifact: Artifact) -> Iterator[str]:
    """Every sentence of the corpus, in order."""
    for name in shard_names(artifact):
        for document in read_documents(artifact, name):
            yield from document
