"""All formats of sources: a new one is a file beside this one, a line in this tuple, and its name in `SourceKind`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from bertwright.corpus.article import Article
from bertwright.corpus.config import SourceKind
from bertwright.corpus.sources import datasets, jsonl, parquet, text, wiki, wikiextractor
from bertwright.corpus.sources.format import SourceFormat
from bertwright.corpus.sources.job import Job

FORMATS: tuple[SourceFormat, ...] = (
    parquet.FORMAT,
    datasets.FORMAT,
    wiki.FORMAT,
    wikiextractor.FORMAT,
    jsonl.FORMAT,
    text.FORMAT,
)
"""In the order in which a file is tried; the last takes any text."""

_FORMATS = {known.kind: known for known in FORMATS}


def format_of(kind: SourceKind) -> SourceFormat:
    """The format of this kind."""
    return _FORMATS[kind]


def documents(job: Job, counts: Counter[str], state: dict[str, Any]) -> Iterator[Article]:
    """The documents of the piece as its format reads them; that a file broke off is said of its last piece alone."""
    yield from format_of(job.file.format).documents(job, counts, state)
    # Pieces before the last end where the next begins, which is no end of the file.
    if not job.piece.last:
        state["ended"], state["lost_bytes"] = True, 0
