"""The articles of one piece of a source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.corpus.article import Article, Paragraph
from bertwright.corpus.config import CorpusConfig
from bertwright.corpus.errors import SourceError, damaged
from bertwright.corpus.sources.dump import END, Header, Page, PageSplitter, parse_page
from bertwright.corpus.sources.file import Source
from bertwright.corpus.sources.pieces import Piece, read
from bertwright.corpus.sources.plain import DocumentSplitter
from bertwright.corpus.wikitext.clean import is_disambiguation, paragraphs, redirect_target
from bertwright.corpus.wikitext.site import Site


@dataclass(frozen=True)
class Job:
    """A piece and all that is needed to work on it."""

    piece: Piece
    source: Source
    header: Header
    config: CorpusConfig
    parts: Path


def articles(job: Job, counts: Counter[str], state: dict[str, Any]) -> Iterator[Article]:
    """The articles of the piece in order; what was read is added to `counts`, how it ended is noted in `state`."""
    made = _articles_of_dump if job.source.content == "dump" else _articles_of_text
    return made(job, counts, state)


def _articles_of_text(job: Job, counts: Counter[str], state: dict[str, Any]) -> Iterator[Article]:
    facts = {"title": "", "revision": 0, "url": "", "source": "text", "licence": job.config.licence or "unknown"}
    splitting = DocumentSplitter(job.source.path, job.piece.start, cut=job.piece.cut)
    for offset, lines in splitting.documents(read(job.source, job.piece)):
        yield Article({"id": offset, **facts}, [Paragraph(line) for line in lines])
        state["last"] = f"the document at byte {offset:,}"
    counts["source_bytes"] = splitting.bytes
    state["ended"], state["lost_bytes"] = not job.piece.cut, len(splitting.rest)


def _articles_of_dump(job: Job, counts: Counter[str], state: dict[str, Any]) -> Iterator[Article]:
    site = Site(job.header.language or job.config.language, job.header.namespaces)
    origin = {"source": job.header.database, "licence": job.config.licence or job.header.licence}
    for page in _pages(job, counts, state):
        counts["pages"] += 1
        kind = _kind(page, site, job.config.keep_disambiguation)
        if kind != "article":
            counts[kind] += 1
            continue
        facts = {"id": page.id, "title": page.title, "revision": page.revision, "url": job.header.url(page.title)}
        yield Article(facts | origin, paragraphs(page.text, site))


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
