"""The articles of a Wikipedia dump: pages of the main namespace, cleaned of their markup."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bertwright.core.work_split import WorkSplit
from bertwright.corpus.config import SourceConfig
from bertwright.corpus.errors import MAX_DOCUMENT, SourceError, damaged
from bertwright.corpus.sources.dump import (
    END,
    PAGE,
    Header,
    Page,
    PageSplitter,
    no_pages,
    parse_header,
    parse_page,
    root_element,
)
from bertwright.corpus.sources.file import ExtractJob, File, Piece, Reader
from bertwright.corpus.sources.format import Article, SourceFormat
from bertwright.corpus.sources.pieces import between, bounds, read, spool
from bertwright.corpus.wikitext.clean import is_disambiguation, paragraphs
from bertwright.corpus.wikitext.definitions import read_definitions
from bertwright.corpus.wikitext.links import redirect_target
from bertwright.corpus.wikitext.site import Site

BOUNDARY = re.compile(b"(?=%b)" % PAGE)
_HEAD = 2**16
# Characters that XML 1.0 §2.2 does not allow.
_NO_CHARACTER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def matches(head: bytes) -> bool:
    """Whether the root element is that of a MediaWiki export."""
    return root_element(head) == "mediawiki"


def page_bounds(file: File) -> list[int]:
    """The `bounds` of a dump: before pages, or between the streams of a multistream dump."""
    # The last stream of a multistream dump has only the closing tag.
    return bounds(file, BOUNDARY, streams=(PAGE, END))


def splits(
    file: File, config: SourceConfig, number: int, first: int, folder: Path, share: WorkSplit
) -> Iterator[Piece]:
    """Yield the pieces of the dump, each of complete pages."""
    cuts = page_bounds(file)
    yield from between(cuts, number, first) if cuts else spool(file, BOUNDARY, number, first, folder, share)


def read_header(file: File) -> Header:
    """The header of a dump, which describes its wiki. Raises `SourceError` where no page follows."""
    head = bytearray()
    for block in Reader(file, size=_HEAD):
        head += block
        if (end := head.find(PAGE)) >= 0:
            return parse_header(bytes(head[:end]), file.path)
        if len(head) > MAX_DOCUMENT:
            break
    parse_header(bytes(head), file.path)
    raise no_pages(file.path, whole=END in head)


def documents(job: ExtractJob, counts: Counter[str], state: dict[str, Any]) -> Iterator[Article]:
    """Yield the articles among the pages of the piece; other pages are only counted, by kind."""
    site = job.site
    definitions = read_definitions(job.definitions) if job.definitions else None
    for page in _pages(job, counts, state):
        counts["pages"] += 1
        kind = _kind(page, site, job)
        if kind != "article":
            counts[kind] += 1
            continue
        facts = {"id": page.id, "title": page.title, "revision": page.revision, "url": job.header.url(page.title)}
        found = paragraphs(page.text, site, job.config.wikitext, page.title, definitions, job.table)
        yield Article(facts | job.origin, found, page.text)


def _kind(page: Page, site: Site, job: ExtractJob) -> str:
    namespace = page.namespace
    if namespace is None:
        prefix, colon, _ = page.title.partition(":")
        namespace = (site.namespace(prefix) or 0) if colon else 0
    if namespace != 0 or page.model != "wikitext":
        return "other_namespaces"
    # Old exports have no <redirect/>, so check the text as well.
    if page.redirect or redirect_target(page.text, site) is not None:
        return "redirects"
    if not job.config.keep_disambiguation and is_disambiguation(page.text, site, job.table):
        return "disambiguations"
    return "article"


def _pages(job: ExtractJob, counts: Counter[str], state: dict[str, Any]) -> Iterator[Page]:
    """Yield the pages of the piece; afterwards `state` has the last page and whether the export ends after it."""
    path, piece = job.file.path, job.piece
    splitting = PageSplitter(path, first=piece.start == 0)
    for data in splitting.pages(read(job.file, piece)):
        try:
            page = _readable(data, counts)
        except ValueError as error:
            streams = job.file.compression == "bz2" and piece.spool is None
            offset, after = (0, f" after byte {piece.start:,} of the file") if streams else (piece.start, "")
            raise damaged(path, data, offset + splitting.offset, error, after) from error
        yield page
        state["last"] = f"the page {page.title!r} (id {page.id})"
    counts["source_bytes"] = splitting.bytes
    if not piece.last and splitting.rest:
        raise SourceError(f"{path} is damaged: a page has no end before byte {piece.stop:,}. Download it again.")
    state["ended"] = splitting.rest.rstrip() == END
    state["lost_bytes"] = 0 if state["ended"] else len(splitting.rest)


def _readable(data: bytes, counts: Counter[str]) -> Page:
    """The page, with U+FFFD in place of invalid UTF-8 and of characters not allowed in XML, so that one bad byte does
    not make a dump unusable.

    Adds their number to `replaced_characters` of `counts`. Raises `ValueError` for a page that is still not readable.
    """
    try:
        return parse_page(data)
    except ValueError:
        decoded = data.decode(errors="replace")
        text, forbidden = _NO_CHARACTER.subn("\ufffd", decoded)
        # Do not count U+FFFD that the page itself contains.
        undecodable = decoded.count("\ufffd") - data.count("\ufffd".encode())
        if not forbidden + undecodable:
            raise
        page = parse_page(text.encode())
        counts["replaced_characters"] += forbidden + undecodable
        return page


FORMAT = SourceFormat(
    "dump", matches, splits, documents, is_wiki=True, header=lambda file, _: read_header(file), bytes_per_text=3
)
"""`bytes_per_text`: the XML of three dumps has 2.8 to 3.2 bytes per byte of text."""
