"""Plain text whose documents end with `<|endoftext|>`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bertwright.core.work_split import WorkSplit
from bertwright.corpus.config import SourceConfig
from bertwright.corpus.sources.file import ExtractJob, File, Piece
from bertwright.corpus.sources.format import Article, SourceFormat
from bertwright.corpus.sources.pieces import text_pieces
from bertwright.corpus.sources.records import document, records

MARK = "<|endoftext|>"
BOUNDARY = re.compile(re.escape(MARK.encode()) + rb"\s*")


def matches(head: bytes) -> bool:
    """Whether a document ends in what the text begins with."""
    return MARK.encode() in head


def splits(
    file: File, config: SourceConfig, number: int, first: int, folder: Path, share: WorkSplit
) -> Iterator[Piece]:
    """The pieces of the file, which end where a document does."""
    return text_pieces(file, BOUNDARY, number, first, folder, share)


def documents(job: ExtractJob, counts: Counter[str], state: dict[str, Any]) -> Iterator[Article]:
    """A document before each mark; text without one was cut off and is left out."""
    torn, whole = -1, dict[str, Any]()  # where it begins
    for offset, record in records(job, BOUNDARY, counts, state):
        text, mark, _ = record.rpartition(MARK)
        if mark:
            yield document(job, text, {}, offset)
        else:  # the last one
            torn, whole = offset, state.copy()
    if torn >= 0:
        del state["last"]
        state.update(whole, ended=False, lost_bytes=job.piece.start + counts["source_bytes"] - torn)


FORMAT = SourceFormat("marked", matches, splits, documents, certain=False)
