"""One piece of a source becomes one part: cleaned, split and filtered documents with the hash of each text.

A part is three files beside each other in the stage's folder of parts: the documents (`.txt.zst`), their facts
(`.jsonl.zst`) and one row of numbers per document (`.npy`). `.json` holds what was counted; it is written last,
so a part without it is made again.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from bertwright.core.files import write_atomic, write_json
from bertwright.corpus.config import CorpusConfig
from bertwright.corpus.dump import END, Header, Page, PageSplitter, parse_page
from bertwright.corpus.errors import SourceError, damaged
from bertwright.corpus.filter import DocumentFilter
from bertwright.corpus.pieces import Piece, read
from bertwright.corpus.plain import DocumentSplitter
from bertwright.corpus.site import Site
from bertwright.corpus.source import Source
from bertwright.corpus.split import splitter
from bertwright.corpus.wikitext import Paragraph, is_disambiguation, paragraphs, redirect_target

ROW = np.dtype([("high", "<u8"), ("low", "<u8"), ("bytes", "<i8"), ("sentences", "<i8"), ("words", "<i8")])
"""Per document: the two halves of its text's 128-bit hash, and its size with the blank line after it."""


@dataclass(frozen=True)
class Job:
    """A piece and all that is needed to work on it."""

    piece: Piece
    source: Source
    header: Header
    config: CorpusConfig
    parts: Path


@dataclass(frozen=True)
class _Article:
    """A page or text document before its sentences are found."""

    facts: dict[str, Any]
    paragraphs: list[Paragraph]


def extract(job: Job) -> int:
    """Make the part of `job.piece` unless it is there; returns the bytes of the file it stands for."""
    path = job.parts / job.piece.name
    if not path.with_suffix(".json").is_file():
        counts: Counter[str] = Counter()
        state: dict[str, Any] = {}
        articles = _articles_of_dump if job.source.content == "dump" else _articles_of_text
        _write_part(path, job, articles(job, counts, state), counts)
        write_json(path.with_suffix(".json"), {"counts": dict(sorted(counts.items())), **state})
    if job.piece.spool:
        job.piece.spool.unlink(missing_ok=True)
    return job.piece.progress


def _write_part(path: Path, job: Job, articles: Iterator[_Article], counts: Counter[str]) -> None:
    split = _line_splitter(job)
    keep = DocumentFilter(job.config.filter, job.config.language)
    texts, facts, rows = _Compressed(), _Compressed(), []
    for article in articles:
        sentences, offsets = _sentences(article.paragraphs, split)
        reason, language = keep.verdict(sentences) if sentences else ("empty", "")
        counts["documents"] += 1
        if reason:
            counts[f"dropped.{reason}"] += 1
            continue
        text = "\n".join(sentences)
        data = f"{text}\n\n".encode()
        digest = hashlib.blake2b(data, digest_size=16).digest()
        high, low = (int.from_bytes(half, "big") for half in (digest[:8], digest[8:]))
        rows.append((high, low, len(data), len(sentences), text.count(" ") + len(sentences)))
        texts.write(data)
        line = {**article.facts, "language": language or job.config.language, **offsets}
        facts.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
    write_atomic(path.with_suffix(".txt.zst"), texts.finish())
    write_atomic(path.with_suffix(".jsonl.zst"), facts.finish())
    table = io.BytesIO()
    np.save(table, np.array(rows, ROW), allow_pickle=False)
    write_atomic(path.with_suffix(".npy"), table.getvalue())


class _Compressed:
    """Bytes on their way into one zstd frame."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=1).compressobj()
        self._done: list[bytes] = []

    def write(self, data: bytes) -> None:
        self._done.append(self._compressor.compress(data))

    def finish(self) -> bytes:
        return b"".join([*self._done, self._compressor.flush()])


def _sentences(found: list[Paragraph], split: Callable[[str], list[str]]) -> tuple[list[str], dict[str, Any]]:
    """The sentences, and the indices of those that begin a paragraph or follow a heading."""
    sentences: list[str] = []
    headings: list[tuple[int, str]] = []
    starts: list[int] = []
    for paragraph in found:
        if paragraph.heading:
            headings.append((len(sentences), paragraph.heading))
        if new := split(paragraph.text):
            starts.append(len(sentences))
            sentences += new
    return sentences, {"headings": headings, "paragraphs": starts}


def _line_splitter(job: Job) -> Callable[[str], list[str]]:
    if job.source.content == "text" and job.config.lines == "sentences":
        return lambda line: [" ".join(line.split())]
    return splitter(job.config.language)


def _articles_of_text(job: Job, counts: Counter[str], state: dict[str, Any]) -> Iterator[_Article]:
    facts = {"title": "", "revision": 0, "url": "", "source": "text", "licence": job.config.licence or "unknown"}
    splitting = DocumentSplitter(job.source.path, job.piece.start, cut=job.piece.cut)
    for offset, lines in splitting.documents(read(job.source, job.piece)):
        yield _Article({"id": offset, **facts}, [Paragraph(line, None) for line in lines])
        state["last"] = f"the document at byte {offset:,}"
    counts["source_bytes"] = splitting.bytes
    state["ended"], state["lost_bytes"] = not job.piece.cut, len(splitting.rest)


def _articles_of_dump(job: Job, counts: Counter[str], state: dict[str, Any]) -> Iterator[_Article]:
    site = Site(job.header.language or job.config.language, job.header.namespaces)
    origin = {"source": job.header.database, "licence": job.config.licence or job.header.licence}
    for page in _pages(job, counts, state):
        counts["pages"] += 1
        kind = _kind(page, site, job.config.keep_disambiguation)
        if kind != "article":
            counts[kind] += 1
            continue
        facts = {"id": page.id, "title": page.title, "revision": page.revision, "url": job.header.url(page.title)}
        yield _Article(facts | origin, paragraphs(page.text, site))


def _kind(page: Page, site: Site, keep_disambiguation: bool) -> str:
    namespace = page.namespace
    if namespace is None:
        prefix, colon, _ = page.title.partition(":")
        namespace = (site.namespace(prefix) or 0) if colon else 0
    if namespace != 0 or page.model != "wikitext":
        return "other_namespaces"
    if page.redirect or redirect_target(page.text, site) is not None:
        return "redirects"
    return "disambiguations" if not keep_disambiguation and is_disambiguation(page.text, site) else "article"


def _pages(job: Job, counts: Counter[str], state: dict[str, Any]) -> Iterator[Page]:
    """The pages of the piece; `state` then names the last one and says whether the export ends after it."""
    path, piece = job.source.path, job.piece
    splitting = PageSplitter(path, first=piece.index == 0)
    for data in splitting.pages(read(job.source, piece)):
        try:
            page = parse_page(data)
        except ValueError as error:
            streams = job.source.compression == "bz2" and piece.spool is None
            offset, after = (0, f" after byte {piece.start:,} of the file") if streams else (piece.start, "")
            raise damaged(path, data, offset + splitting.offset, error, after) from error
        yield page
        state["last"] = f"the page {page.title!r} (id {page.id})"
    counts["source_bytes"] = splitting.bytes
    if not piece.last and splitting.rest:
        raise SourceError(f"{path} is damaged: a page has no end before byte {piece.stop:,}. Download it again.")
    state["ended"] = splitting.rest.rstrip() == END
    state["lost_bytes"] = 0 if state["ended"] else len(splitting.rest)
