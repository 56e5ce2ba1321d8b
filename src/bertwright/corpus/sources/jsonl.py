"""JSONL: one object per line, with its text under one key and, optionally, the keys title, url, id and revision."""

from __future__ import annotations

import json
import re
from typing import Any

from bertwright.corpus.errors import SourceError
from bertwright.corpus.sources.file import ExtractJob
from bertwright.corpus.sources.format import Article
from bertwright.corpus.sources.records import LINE, TruncatedRecordError, document, line_number, text_format


def matches(head: bytes) -> bool:
    """Whether the text begins like a JSON object; if its first line is not one, reading it reports what is wrong."""
    return re.match(rb'\{\s*["}]', head.lstrip()) is not None


def parse(job: ExtractJob, offset: int, line: str) -> Article:
    """The document of a line; an invalid last line without a newline was truncated."""
    try:
        record = json.loads(line)
    # `[[[[…` may be valid JSON, but too deep for the parser.
    except (ValueError, RecursionError) as error:
        if line.endswith("\n"):
            raise _wrong(job, offset, f"is not JSON ({error})") from error
        raise TruncatedRecordError from error
    return document(job, _text(job, offset, record), record, offset)


def _text(job: ExtractJob, offset: int, record: Any) -> str:
    key = job.source.text
    if not isinstance(record, dict):
        raise _wrong(job, offset, f"is not a JSON object but {str(record)[:40]!r}")
    if key not in record:
        raise _wrong(job, offset, f"has no key {key!r}; its keys are {', '.join(map(repr, record))}", job.source.text)
    if not isinstance(record[key], str | None):
        raise _wrong(job, offset, f"has, under {key!r}, not text but {str(record[key])[:40]!r}", job.source.text)
    # Null is a document without text, which the filter counts as empty.
    return record[key] or ""


def _wrong(job: ExtractJob, offset: int, what: str, key: str = "") -> SourceError:
    remedy = (
        "Name the key that holds the text in corpus.source.text"
        if key
        else "Correct the line, or set another corpus.source.format"
    )
    return SourceError(f"{job.file.path}: line {line_number(job.file, offset):,} {what}. {remedy}.")


FORMAT = text_format("jsonl", matches, lambda _: LINE, parse, certain=False, keys=frozenset({"text"}))
