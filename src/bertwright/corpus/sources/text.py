"""Plain text in four layouts."""

from __future__ import annotations

import re

from bertwright.corpus.sources.file import ExtractJob
from bertwright.corpus.sources.format import Article, Paragraph
from bertwright.corpus.sources.records import LINE, plain_lines, text_format

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


def parse(job: ExtractJob, offset: int, text: str) -> Article | None:
    """The document of a record; plain text has no metadata, so its id is its byte offset."""
    if job.source.lines == "wrapped":
        lines = [" ".join(plain_lines(lines)) for lines in re.split(_BLANK_LINES, text)]
    else:
        lines = plain_lines(text)
    paragraphs = [Paragraph(line) for line in lines if line]
    return (
        Article({"id": offset, "title": "", "revision": 0, "url": "", **job.origin}, paragraphs) if paragraphs else None
    )


FORMAT = text_format(
    "text", matches, lambda config: BOUNDARIES[config.lines], parse, certain=False, keys=frozenset({"lines"})
)
