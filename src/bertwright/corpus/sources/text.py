"""Plain text in four layouts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from bertwright.corpus.article import Article, Paragraph
from bertwright.corpus.sources.job import Job
from bertwright.corpus.sources.records import LINE, plain_lines, records

_BLANK_LINES = r"\n[ \t\r]*+\n[ \t\r\n]*+"
"""With what follows as far as it is white space: repeated groups would take memory for every line of a long gap."""
BLANK_LINES = re.compile(_BLANK_LINES.encode())
NEVER = re.compile(rb"(?!)")
BOUNDARIES = {"paragraphs": BLANK_LINES, "sentences": BLANK_LINES, "articles": LINE, "wrapped": NEVER}
"""What ends a document, by `SourceConfig.lines`."""


def articles(job: Job, counts: Counter[str], state: dict[str, Any]) -> Iterator[Article]:
    """The documents of the piece; as a text says nothing of them, their ids are their byte offsets."""
    facts = {"title": "", "revision": 0, "url": "", **job.origin}
    for offset, text in records(job, BOUNDARIES[job.source.lines], counts, state):
        if job.source.lines == "wrapped":
            paragraphs = [" ".join(plain_lines(lines)) for lines in re.split(_BLANK_LINES, text)]
        else:
            paragraphs = plain_lines(text)
        if found := [Paragraph(line) for line in paragraphs if line]:
            yield Article({"id": offset, **facts}, found)
