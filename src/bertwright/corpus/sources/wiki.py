"""The articles of a Wikipedia dump: pages of the main namespace, cleaned of their markup."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from html import escape
from html.entities import html5
from pathlib import Path
from typing import Any

from bertwright.core.work_split import WorkSplit
from bertwright.corpus.config import SourceConfig, WikitextConfig
from bertwright.corpus.errors import MAX_DOCUMENT, SourceError, bad_encoding, damaged
from bertwright.corpus.sources.books import PROOFREAD, level, title
from bertwright.corpus.sources.dump import (
    END,
    PAGE,
    Header,
    Page,
    PageSplitter,
    next_header,
    no_pages,
    parse_header,
    parse_page,
    root_element,
)
from bertwright.corpus.sources.file import ExtractJob, File, Piece, Reader
from bertwright.corpus.sources.format import Article, SourceFormat
from bertwright.corpus.sources.pieces import between, bounds, read, spool
from bertwright.corpus.sources.records import most_replaced
from bertwright.corpus.wikitext.clean import is_disambiguation, paragraphs
from bertwright.corpus.wikitext.definitions import read_definitions
from bertwright.corpus.wikitext.links import redirect_target
from bertwright.corpus.wikitext.site import Site

BOUNDARY = re.compile(b"(?=%b)" % PAGE)
_HEAD = 2**16
_AMPERSAND = re.compile(r"&(?:#([0-9]{1,9}|[xX][0-9A-Fa-f]{1,8});|([A-Za-z][A-Za-z0-9]{0,40});)?")
# Characters that XML 1.0 §2.2 does not allow.
_NO_CHARACTER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def matches(head: bytes) -> bool:
    """Whether the root element is that of a MediaWiki export."""
    return root_element(head) == "mediawiki"


def page_bounds(file: File) -> list[int]:
    """The `bounds` of a dump: before pages, or between the streams of a multistream dump."""
    # The last stream of a multistream dump has only the closing tag.
    return bounds(file, BOUNDARY, streams=(PAGE, END, b"<mediawiki", b"<?xml"))


def splits(
    file: File, config: SourceConfig, number: int, first: int, folder: Path, share: WorkSplit
) -> Iterator[Piece]:
    """Yield the pieces of the dump, each of complete pages."""
    cuts = page_bounds(file)
    yield from between(cuts, number, first) if cuts else spool(file, BOUNDARY, number, first, folder, share)


def read_header(file: File) -> Header:
    """The header of a dump, which describes its wiki. Raises `SourceError` where no page follows."""
    return _read_header(file, file.state)


# Cached, because several steps need it, and the beginning of a bz2 file is a block of 900 kB that is decoded whole.
@lru_cache(maxsize=64)
def _read_header(file: File, state: tuple[int, int]) -> Header:
    head = bytearray()
    for block in Reader(file, size=_HEAD):
        head += block
        if (end := head.find(PAGE)) >= 0:
            return parse_header(bytes(head[:end]), file.path)
        if len(head) > MAX_DOCUMENT:
            break
    parse_header(bytes(head), file.path)
    raise no_pages(file.path, whole=END in head)


def lowest_level(config: WikitextConfig) -> int:
    """The lowest level of the pages of scans that are read (`books`)."""
    return 1 if config.unproofread_pages else PROOFREAD


def documents(job: ExtractJob, counts: Counter[str], state: dict[str, Any]) -> Iterator[Article]:
    """Yield the articles among the pages of the piece, or its books; other pages are only counted, by kind, and those
    of other namespaces with their bytes, too."""
    site = job.site
    definitions = read_definitions(job.definitions) if job.definitions else None
    for page in _pages(job, counts, state):
        name = page.title
        if job.piece.books:
            counts["books"] += 1
            name = title(name)
        else:
            counts["pages"] += 1
            kind = _kind(page, site, job)
            if kind == "other_namespaces":
                place = _place_of(page, site)
                counts[f"namespaces.{place}"] += 1
                counts[f"namespace_bytes.{place}"] += len(page.text.encode())
            if kind != "article":
                counts[kind] += 1
                continue
            counts["includes_scans"] += "<pages " in page.text
        facts = {"id": page.id, "title": name, "revision": page.revision, "url": job.header.url(page.title)}
        found = paragraphs(page.text, site, job.config.wikitext, name, definitions, job.table)
        yield Article(facts | job.origin, found, page.text)


def _kind(page: Page, site: Site, job: ExtractJob) -> str:
    quality = level(page)
    if quality is not None:
        return "other_namespaces" if quality < lowest_level(job.config.wikitext) else "scanned_pages"
    if _namespace(page, site) != 0 or page.model != "wikitext":
        return "other_namespaces"
    # Old exports have no <redirect/>, so check the text as well.
    if page.redirect or redirect_target(page.text, site) is not None:
        return "redirects"
    if not job.config.keep_disambiguation and is_disambiguation(page.text, site, job.table):
        return "disambiguations"
    return "article"


def _namespace(page: Page, site: Site) -> int:
    if page.namespace is not None:
        return page.namespace
    prefix, colon, _ = page.title.partition(":")
    return (site.namespace(prefix) or 0) if colon else 0


def _place_of(page: Page, site: Site) -> str:
    """The namespace of a page that is passed over, by the wiki's own name, with the reason if it is another one."""
    number = _namespace(page, site)
    name = site.namespaces.get(number, ("",))[0] or (f"namespace {number}" if number else "articles")
    quality = level(page)
    if quality is not None:
        return f"{name}, {'not proofread' if quality else 'without text'}"
    return name if number else f"{name}, {page.model}"


def _pages(job: ExtractJob, counts: Counter[str], state: dict[str, Any]) -> Iterator[Page]:
    """Yield the pages of the piece; afterwards `state` has the last page and whether the export ends after it."""
    path, piece = job.file.path, job.piece
    splitting = PageSplitter(path, first=piece.start == 0)
    streams = job.file.compression == "bz2" and piece.spool is None
    start, after = (0, f" after byte {piece.start:,} of the file") if streams else (piece.start, "")
    first_bad = -1
    for data in splitting.pages(read(job.file, piece)):
        _check_same_wiki(job, splitting.header)
        try:
            page, replaced = _readable(data)
        except ValueError as error:
            raise damaged(path, data, start + splitting.offset, error, after) from error
        if replaced:
            counts["replaced_characters"] += replaced
            first_bad = start + splitting.offset if first_bad < 0 else first_bad
        yield page
        state["last"] = f"the page {page.title!r} (id {page.id})"
    counts["source_bytes"] = 0 if piece.books else splitting.bytes
    if counts["replaced_characters"] > most_replaced(splitting.bytes):
        raise bad_encoding(path, first_bad, job.file.encoding.upper(), after)
    following = next_header(splitting.rest)
    # A stream that ends one export may be the last before another begins.
    if not piece.last and splitting.rest.rstrip() not in (b"", END) and not following:
        raise SourceError(f"{path} is damaged: a page has no end before byte {piece.stop:,}. Download it again.")
    _check_same_wiki(job, following)
    state["ended"] = splitting.rest.rstrip() == END
    state["lost_bytes"] = 0 if state["ended"] else len(splitting.rest)


def _check_same_wiki(job: ExtractJob, header: bytes) -> None:
    """Raise `SourceError` if another export begins here that is of another wiki, whose namespaces have other names."""
    if not header:
        return
    other = parse_header(header, job.file.path)
    if (other.database, other.base, other.language) != (job.header.database, job.header.base, job.header.language):
        raise SourceError(
            f"{job.file.path} holds exports of two wikis, {job.header.database or job.header.base!r} and "
            f"{other.database or other.base!r}. Give each wiki a file and a source of its own."
        )


def _readable(data: bytes) -> tuple[Page, int]:
    """The page, and how many U+FFFD in it replace what is no character: invalid UTF-8, and what XML does not allow,
    as it stands or as a reference to its number. One bad byte must not make a dump unusable.

    An "&" that begins no reference is text, and the names of HTML are known. Raises `ValueError` for a page that is
    still not readable.
    """
    try:
        return parse_page(data), 0
    except ValueError:
        decoded = data.decode(errors="replace")
        text = _AMPERSAND.sub(_allowed, _NO_CHARACTER.sub("\ufffd", decoded))
        if text == decoded and "\ufffd" not in decoded:
            raise
        page = parse_page(text.encode())
        # Do not count U+FFFD that the page itself contains.
        return page, text.count("\ufffd") - data.count("\ufffd".encode())


def _allowed(reference: re.Match[str]) -> str:
    """A reference as XML allows it."""
    number, name = reference[1], reference[2]
    if number:
        code = int(number[1:], 16) if number[0] in "xX" else int(number)
        allowed = code in (9, 10, 13) or 32 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x110000
        return f"&#{code};" if allowed else "\ufffd"
    if name in ("amp", "lt", "gt", "quot", "apos"):
        return reference[0]
    return escape(html5.get(f"{name};") or reference[0])


FORMAT = SourceFormat(
    "dump", matches, splits, documents, is_wiki=True, header=lambda file, _: read_header(file), bytes_per_text=3
)
"""`bytes_per_text`: the XML of three dumps has 2.8 to 3.2 bytes per byte of text."""
