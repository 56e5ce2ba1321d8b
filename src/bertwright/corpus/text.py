"""Reading a corpus: what the stages after it need."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import zstandard

from bertwright.core.artifact import Artifact

SHARDS = "shards/"
TEXT, FACTS = ".txt.zst", ".jsonl.zst"
"""A shard's sentences, and its side-car: one line of JSON says what is known of a document (title, url, ...)."""


def shard_names(artifact: Artifact) -> list[str]:
    """The names of the text shards, in corpus order."""
    return [name for name in artifact.names(SHARDS) if name.endswith(TEXT)]


def read_documents(artifact: Artifact, shard_name: str) -> Iterator[list[str]]:
    """The documents of one shard, each a list of its sentences."""
    return documents_in(artifact.file(shard_name))


def documents_in(shard: Path) -> Iterator[list[str]]:
    """The documents of a shard's file; the last needs no blank line after it."""
    document: list[str] = []
    for line in _lines(shard):
        if line == "\n":
            yield document
            document = []
        else:
            document.append(line.removesuffix("\n"))
    if document:
        yield document


def sentences(artifact: Artifact) -> Iterator[str]:
    """Every sentence of the corpus, in order."""
    for name in shard_names(artifact):
        for document in read_documents(artifact, name):
            yield from document


def _lines(shard: Path) -> Iterator[str]:
    with shard.open("rb") as handle:
        stream = zstandard.ZstdDecompressor().stream_reader(handle)
        with io.TextIOWrapper(stream, encoding="utf-8", newline="\n") as lines:
            yield from lines
