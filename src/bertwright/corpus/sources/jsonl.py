"""JSONL: one object per line, with its text under one key and, optionally, the keys title, url, id and revision."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bertwright.core.work_split import WorkSplit
from bertwright.corpus.config import SourceConfig
from bertwright.corpus.errors import SourceError
from bertwright.corpus.sources.file import ExtractJob, File, Piece
from bertwright.corpus.sources.format import Article, SourceFormat
from bertwright.corpus.sources.pieces import text_pieces
from bertwright.corpus.sources.records import LINE, document, line_number, records

BOUNDARY = LINE


def matches(head: bytes) -> bool:
    """Whether the text begins like a JSON object; if its first line is not one, reading it reports what is wrong."""
    return re.match(rb'\{\s*["}]', head.lstrip()) is not None


def splits(
    file: File, config: SourceConfig, number: int, first: int, folder: Path, share: WorkSplit
) -> Iterator[Piece]:
    """The pieces of the file; each ends at the end of a document."""
    return text_pieces(file, BOUNDARY, number, first, folder, share)


def documents(job: ExtractJob, counts: Counter[str], state: dict[str, Any]) -> Iterator[Article]:
    """Yield one document per line; an invalid last line without a newline was truncated and is skipped."""
    torn, whole = -1, dict[str, Any]()  # the offset of a truncated line, and the state before it
    for offset, line in records(job, BOUNDARY, counts, state):
        try:
            record = json.loads(line)
        # `[[[[…` may be valid JSON, but too deep for the parser.
        except (ValueError, RecursionError) as error:
            if line.endswith("\n"):
                raise _wrong(job, offset, f"is not JSON ({error})") from error
            torn, whole = offset, state.copy()
            continue
        yield document(job, _text(job, offset, record), record, offset)
    if torn >= 0:
        del state["last"]  # which names the truncated line
        state.update(whole, ended=False, lost_bytes=job.piece.start + counts["source_bytes"] - torn)


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


FORMAT = SourceFormat("jsonl", matches, splits, documents, certain=False, keys=frozenset({"text"}))
