"""The formats of text: plain text in four layouts, JSON lines, and the output of WikiExtractor.

JSON lines have one object per line, with its text under one key and, optionally, the keys title, url, id and revision.
WikiExtractor writes `<doc id="" url="" title="">`, the title, one paragraph per line, `</doc>`, or with --json JSON
lines. In both it escapes "&", "<" and ">" by default.
"""

from __future__ import annotations

import json
import re
from typing import Any

from bertwright.corpus.errors import SourceError
from bertwright.corpus.sources.file import ExtractJob
from bertwright.corpus.sources.format import Article, Paragraph
from bertwright.corpus.sources.records import (
    LINE,
    TruncatedRecordError,
    document,
    line_number,
    plain_lines,
    text_format,
)

# Blank lines of Chinese and Japanese texts may hold ideographic spaces, those of converted PDFs form feeds.
_SPACES = "[ \\t\\r\\f\\v]++|\u00a0|\u3000"
# Includes all white space that follows: a repeated group would take memory for every line of a long gap.
_BLANK_LINES = rf"\n(?:{_SPACES})*+\n(?:{_SPACES}|\n++)*+"
BLANK_LINES = re.compile(_BLANK_LINES.encode())
NEVER = re.compile(rb"(?!)")
BOUNDARIES = {"paragraphs": BLANK_LINES, "sentences": BLANK_LINES, "articles": LINE, "wrapped": NEVER}
"""The boundary between documents, by `SourceConfig.lines`."""


def _any_text(head: bytes) -> bool:
    """True for any text: this format is tried last."""
    return True


def _parse_text(job: ExtractJob, offset: int, text: str) -> Article | None:
    """The document of a record; plain text has no metadata, so its id is its byte offset."""
    if job.source.lines == "wrapped":
        lines = [" ".join(plain_lines(lines)) for lines in re.split(_BLANK_LINES, text)]
    else:
        lines = plain_lines(text)
    if not (paragraphs := [Paragraph(line) for line in lines if line]):
        return None
    return Article({"id": offset, "title": "", "revision": 0, "url": "", **job.origin}, paragraphs)


TEXT = text_format(
    "text", _any_text, lambda config: BOUNDARIES[config.lines], _parse_text, certain=False, keys=frozenset({"lines"})
)


def _begins_with_object(head: bytes) -> bool:
    """Whether the text begins like a JSON object; if its first line is not one, reading it reports what is wrong."""
    return re.match(rb'\{\s*["}]', head.lstrip()) is not None


def _parse_object(job: ExtractJob, offset: int, line: str) -> Article:
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


JSONL = text_format(
    "jsonl", _begins_with_object, lambda _: LINE, _parse_object, certain=False, keys=frozenset({"text"})
)


DOCUMENT_END = re.compile(rb"\n</doc>[ \t\r]*\n")
_DOCUMENT = re.compile(
    r'<doc id="(?P<id>[^"\n]*)"(?: revid="(?P<revision>[^"\n]*)")? url="(?P<url>[^"\n]*)" title="(?P<title>.*)">\r?\n'
    r"(?P<text>[\s\S]*?)(?P<end>(?<=\n)</doc>\s*)?\Z"
)


def _begins_with_document(head: bytes) -> bool:
    """Whether the text begins with an article."""
    return head.lstrip().startswith(b"<doc id=")


def _parse_document(job: ExtractJob, offset: int, record: str) -> Article:
    """The document of a `<doc>`; the last one of a truncated file has no `</doc>`."""
    match = _DOCUMENT.match(record)
    if match is None:
        line = line_number(job.file, offset)
        raise SourceError(
            f'{job.file.path}: line {line:,} should begin a document with <doc id="…" url="…" title="…">, but is '
            f"{record.partition(chr(10))[0][:60]!r}. Run WikiExtractor again, or set another corpus.source.format."
        )
    if match["end"] is None:
        raise TruncatedRecordError
    facts = {key: value for key, value in match.groupdict().items() if key not in ("end", "text") and value}
    return document(job, match["text"], facts, offset)


WIKIEXTRACTOR = text_format(
    "wikiextractor", _begins_with_document, lambda _: DOCUMENT_END, _parse_document, also=("jsonl",)
)
