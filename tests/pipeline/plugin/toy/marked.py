"""Plain text whose documents end with `<|endoftext|>`."""

from __future__ import annotations

import re

from bertwright.corpus.sources.file import ExtractJob
from bertwright.corpus.sources.format import Article
from bertwright.corpus.sources.records import TruncatedRecordError, document, text_format

MARK = "<|endoftext|>"
BOUNDARY = re.compile(re.escape(MARK.encode()) + rb"\s*")


def matches(head: bytes) -> bool:
    """Whether a document ends in what the text begins with."""
    return MARK.encode() in head


def parse(job: ExtractJob, offset: int, record: str) -> Article:
    """The document before a mark."""
    text, mark, _ = record.rpartition(MARK)
    if not mark:
        raise TruncatedRecordError
    return document(job, text, {}, offset)


FORMAT = text_format("marked", matches, lambda _: BOUNDARY, parse, certain=False)
