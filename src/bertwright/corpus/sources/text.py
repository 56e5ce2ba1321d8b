"""Plain text in four layouts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bertwright.core.work_split import WorkSplit
from bertwright.corpus.config import SourceConfig
from bertwright.corpus.sources.file import ExtractJob, File, Piece
from bertwright.corpus.sources.format import Article, Paragraph, SourceFormat
from bertwright.corpus.sources.pieces import text_pieces
from bertwright.corpus.sources.records import LINE, plain_lines, records

# Blank lines of Chinese and Japanese texts may hold ideographic spaces, those of converted PDFs form feeds.
_SPACES = "[ \\t\\r\\f\\v]++|\u00a0|\u3000"
# Includes all white space that follows: a repeated group would take memory for every line of a long gap.
_BLANK_LINES = rf"\n(?:{_SPACES})*+\n(?:{_SPACES}|\n++)*+"
BLANK_LINES = re.compile(_BLANK_LINES.encode())
NEVER = re.compile(rb"(?!)")
BOUNDARIES = {"paragraphs": BLANK_LINES, "sentences": BLANK_LINES, "articles": LINE, "wrapped": NEVER}
"""The boundary between documents, by `SourceConfig.lines`."""


def matches(head: bytes) -> bool:
    """True for any text: this format is tried last."""
    return True


def splits(
    file: File, config: SourceConfig, number: int, first: int, folder: Path, share: WorkSplit
) -> Iterator[Piece]:
    """The pieces of the file; each ends at the end of a document."""
    return text_pieces(file, BOUNDARIES[config.lines], number, first, folder, share)


def documents(job: ExtractJob, counts: Counter[str], state: dict[str, Any]) -> Iterator[Article]:
    """Yield the documents of the piece; plain text has no metadata, so their ids are their byte offsets."""
    facts = {"title": "", "revision": 0, "url": "", **job.origin}
    for offset, text in records(job, BOUNDARIES[job.source.lines], counts, state):
        if job.source.lines == "wrapped":
            paragraphs = [" ".join(plain_lines(lines)) for lines in re.split(_BLANK_LINES, text)]
        else:
            paragraphs = plain_lines(text)
        if kept := [Paragraph(line) for line in paragraphs if line]:
            yield Article({"id": offset, **facts}, kept)


FORMAT = SourceFormat("text", matches, splits, documents, certain=False, keys=frozenset({"lines"}))
