"""The output of WikiExtractor: `<doc id="" url="" title="">`, the title, one paragraph per line, `</doc>`.

With --json WikiExtractor writes JSONL, which `jsonl` reads. In both it escapes "&", "<" and ">" by default.
"""

from __future__ import annotations

import re

from bertwright.corpus.errors import SourceError
from bertwright.corpus.sources.file import ExtractJob
from bertwright.corpus.sources.format import Article
from bertwright.corpus.sources.records import TruncatedRecordError, document, line_number, text_format

BOUNDARY = re.compile(rb"\n</doc>[ \t\r]*\n")
_DOCUMENT = re.compile(
    r'<doc id="(?P<id>[^"\n]*)"(?: revid="(?P<revision>[^"\n]*)")? url="(?P<url>[^"\n]*)" title="(?P<title>.*)">\r?\n'
    r"(?P<text>[\s\S]*?)(?P<end>(?<=\n)</doc>\s*)?\Z"
)


def matches(head: bytes) -> bool:
    """Whether the text begins with an article."""
    return head.lstrip().startswith(b"<doc id=")


def parse(job: ExtractJob, offset: int, record: str) -> Article:
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


FORMAT = text_format("wikiextractor", matches, lambda _: BOUNDARY, parse, also=("jsonl",))
