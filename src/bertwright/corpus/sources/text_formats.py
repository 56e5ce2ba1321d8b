"""The formats of text: plain text in four layouts, JSON lines, dumps of CirrusSearch, and the output of WikiExtractor.

JSON lines have one object per line, with its text under one key and, optionally, the keys title, url, id and revision;
objects of known data sets (`schemas`, which is loaded only where there are objects) are read as those mean them. Dumps
of Wikimedia's search index (CirrusSearch) have two objects per page: one that names it, and its text. WikiExtractor
writes `<doc id="" url="" title="">`, the title, one paragraph per line, `</doc>`, or with --json JSON lines. In both it
escapes "&", "<" and ">" by default.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from bertwright.corpus.config import SourceConfig
from bertwright.corpus.errors import MAX_DOCUMENT, SourceError
from bertwright.corpus.sources.dump import Header
from bertwright.corpus.sources.file import ExtractJob, File, Reader
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
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_LONE = re.compile("[\ud800-\udfff]")
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
    from bertwright.corpus.sources.schemas import schema_of

    record, replaced = _value(job, offset, line)
    schema = schema_of(record, job.source) if isinstance(record, dict) else None
    if schema is None:
        return replace(document(job, _text(job, offset, record), record, offset), replaced=replaced)
    try:
        return replace(schema.read(job, record, offset), replaced=replaced)
    except ValueError as error:
        raise _wrong(job, offset, f"is no record of {schema.name} ({error})") from error


def _value(job: ExtractJob, offset: int, line: str) -> tuple[Any, int]:
    """The value of a line of JSON, and how many U+FFFD in it replace half of a surrogate pair."""
    try:
        value = json.loads(line)
    # `[[[[…` may be valid JSON, but too deep for the parser.
    except (ValueError, RecursionError) as error:
        if line.endswith("\n"):
            raise _wrong(job, offset, f"is not JSON ({error})") from error
        raise TruncatedRecordError from error
    if not _SURROGATE.search(line):
        return value, 0
    # Written anew, only these characters keep their code, so that all strings are searched at once.
    text, replaced = _LONE.subn("\ufffd", json.dumps(value, ensure_ascii=False))
    return (json.loads(text), replaced) if replaced else (value, 0)


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


def _first_header(file: File, config: SourceConfig) -> Header:
    """What the first record of a file says of its wiki."""
    from bertwright.corpus.sources.schemas import header_of

    head = b""
    for block in Reader(file):
        head = (head + block).lstrip(b"\xef\xbb\xbf \t\r\n")
        record = head.partition(b"\n")[2] if _is_index(head) else head
        if b"\n" in record or len(record) > MAX_DOCUMENT:
            break
    else:
        record = head.partition(b"\n")[2] if _is_index(head) else head
    try:
        return header_of(json.loads(record.partition(b"\n")[0]), config)
    except (ValueError, RecursionError):
        return Header()


JSONL = text_format(
    "jsonl",
    _begins_with_object,
    lambda _: LINE,
    _parse_object,
    certain=False,
    keys=frozenset({"text"}),
    header=_first_header,
)

# A line for the search engine, which names the page, before each document.
_INDEX = re.compile(rb'\{\s*"index"\s*:\s*\{[^{}\n]*\}\s*\}')
_BEFORE_INDEX = re.compile(rb'\n(?=\{ ?"index" ?:)')


def _is_index(head: bytes) -> bool:
    """Whether the text begins with the line before a document of CirrusSearch."""
    return _INDEX.match(head.lstrip()) is not None


def _parse_pair(job: ExtractJob, offset: int, lines: str) -> Article | None:
    """The document of a pair of lines."""
    from bertwright.corpus.sources.schemas import read_cirrus

    index, _, line = lines.partition("\n")
    if not line.strip():  # a deleted page, or the file was truncated between the two
        raise TruncatedRecordError
    record, replaced = _value(job, offset + len(index.encode()) + 1, line)
    about, _ = _value(job, offset, index + "\n")
    if not isinstance(record, dict) or not isinstance(about, dict) or not isinstance(about.get("index"), dict):
        raise _wrong(job, offset, "and the one after it are no document of CirrusSearch after its index line")
    return replace(read_cirrus(job, about["index"] | record, offset), replaced=replaced)


CIRRUS = text_format(
    "cirrus", _is_index, lambda _: _BEFORE_INDEX, _parse_pair, also=("jsonl",), header=_first_header, bytes_per_text=2.5
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
