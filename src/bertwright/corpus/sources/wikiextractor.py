"""The output of WikiExtractor: `<doc id="" url="" title="">`, the title, one paragraph per line, `</doc>`.

With --json WikiExtractor writes JSONL, which `jsonl` reads. In both it escapes "&", "<" and ">" by default.
"""

from __future__ import annotations

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
from bertwright.corpus.sources.records import document, line_number, records

BOUNDARY = re.compile(rb"\n</doc>[ \t\r]*\n")
_DOCUMENT = re.compile(
    r'<doc id="(?P<id>[^"\n]*)"(?: revid="(?P<revision>[^"\n]*)")? url="(?P<url>[^"\n]*)" title="(?P<title>.*)">\r?\n'
    r"(?P<text>[\s\S]*?)(?P<end>(?<=\n)</doc>\s*)?\Z"
)


def matches(head: bytes) -> bool:
    """Whether the text begins with an article."""
    return head.lstrip().startswith(b"<doc id=")


def splits(
    file: File, config: SourceConfig, number: int, first: int, folder: Path, share: WorkSplit
) -> Iterator[Piece]:
    """The pieces of the file; each ends at the end of a document."""
    return text_pieces(file, BOUNDARY, number, first, folder, share)


def documents(job: ExtractJob, counts: Counter[str], state: dict[str, Any]) -> Iterator[Article]:
    """Yield one document per `<doc>`; one without `</doc>` was truncated and is skipped."""
    torn, whole = -1, dict[str, Any]()  # the offset of a truncated document, and the state before it
    for offset, record in records(job, BOUNDARY, counts, state):
        match = _DOCUMENT.match(record)
        if match is None:
            line = line_number(job.file, offset)
            raise SourceError(
                f'{job.file.path}: line {line:,} should begin a document with <doc id="…" url="…" title="…">, but is '
                f"{record.partition(chr(10))[0][:60]!r}. Run WikiExtractor again, or set another corpus.source.format."
            )
        # A document without its end is the last one of a truncated file.
        if match["end"] is None:
            torn, whole = offset, state.copy()
            continue
        facts = {key: value for key, value in match.groupdict().items() if key not in ("end", "text") and value}
        yield document(job, match["text"], facts, offset)
    if torn >= 0:
        del state["last"]  # which names the truncated document
        state.update(whole, ended=False, lost_bytes=job.piece.start + counts["source_bytes"] - torn)


FORMAT = SourceFormat("wikiextractor", matches, splits, documents, also=("jsonl",))
