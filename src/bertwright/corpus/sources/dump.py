"""MediaWiki XML exports: their header, the pages they are split into, and files that are almost an export.

In an export every "<" of a text is written "&lt;", so `<page>` and `</page>` can only be the tags themselves: pages
are found in the byte stream by searching for the tags, and expat parses each page separately. Errors thus have an
offset and a page name, a document type cannot be declared, and no tree is kept in memory (schema:
mediawiki.org/xml/export-0.11).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote
from xml.parsers import expat

from bertwright.corpus.errors import MAX_DOCUMENT, SourceError, damaged, too_long
from bertwright.corpus.wikitext.site import Site

PAGE, PAGE_END, END = b"<page>", b"</page>", b"</mediawiki>"
_MAX_DEPTH = 32
# Between two exports that were concatenated.
_NEXT_HEADER = re.compile(rb"\s*+(?:</mediawiki>)?(?:\s|\xef\xbb\xbf)*+(?:<\?xml[^>]*+>\s*+)?(?=<mediawiki[\s>])")


@dataclass
class Page:
    """One page of an export with its last revision."""

    title: str = ""
    namespace: int | None = None
    """None in exports older than 2012, which do not record it."""
    id: int = 0
    revision: int = 0
    redirect: bool = False
    model: str = "wikitext"
    text: str = ""


class PageSplitter:
    """Splits a stream of UTF-8 bytes into pages.

    During iteration `offset` is the position of the current page in the stream, and `header` the header before it if
    another export begins there (`cat a.xml b.xml`), otherwise empty; afterwards `bytes` is the length of the stream and
    `rest` the data after the last complete page.
    """

    def __init__(self, path: Path, *, first: bool) -> None:
        self.offset, self.bytes, self.rest, self.header = 0, 0, b"", b""
        self._path, self._in_header = path, first

    def pages(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield each `<page>…</page>`. Raises `SourceError` for other data between pages or a page that is too long."""
        buffer = bytearray()
        searched = 0
        for block in blocks:
            self.bytes += len(block)
            buffer += block
            start = 0
            while (end := buffer.find(PAGE_END, max(start, searched))) >= 0:
                end += len(PAGE_END)
                yield self._whole(bytes(buffer[start:end]), self.bytes - len(buffer) + start)
                start = searched = end
            del buffer[:start]
            # The tag may be split between two blocks; the data before it is not searched again.
            searched = max(0, len(buffer) - len(PAGE_END))
            if len(buffer) > MAX_DOCUMENT:
                raise too_long(self._path, self.bytes - len(buffer))
        if self._in_header:  # no complete page: keep only what there is of one, from its tag on
            del buffer[: buffer.find(PAGE) if PAGE in buffer else len(buffer)]
        self.rest = bytes(buffer).lstrip()

    def _whole(self, data: bytes, offset: int) -> bytes:
        start = data.find(PAGE)
        self.header = b"" if self._in_header else next_header(data[: max(start, 0)])
        if start < 0 or (data[:start].strip() and not self._in_header and not self.header):
            raise SourceError(
                f"{self._path}: <page> is expected after a page, but {data.lstrip()[:60]!r} was found. "
                "The file is damaged; download it again."
            )
        self._in_header, self.offset = False, offset + start
        return data[start:]


def next_header(data: bytes) -> bytes:
    """The header of another export in the data between two pages; empty if there is none."""
    match = _NEXT_HEADER.match(data)
    return data[match.end() :] if match else b""


class _PageHandler:
    """Fills a `Page` from expat's events."""

    def __init__(self) -> None:
        self.page = Page()
        self._path: list[str] = []
        self._text: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._path) >= _MAX_DEPTH:
            raise ValueError(f"elements are nested deeper than {_MAX_DEPTH}")
        self._path.append(name)
        self._text.clear()
        if name == "redirect" and len(self._path) == 2:
            self.page.redirect = True

    def data(self, text: str) -> None:
        self._text.append(text)

    def end(self, name: str) -> None:
        match self._path[1:]:
            case ["title"]:
                self.page.title = "".join(self._text)
            case ["ns"]:
                self.page.namespace = int("".join(self._text))
            case ["id"]:
                self.page.id = int("".join(self._text))
            case ["revision", "id"]:
                self.page.revision = int("".join(self._text))
            case ["revision", "model"]:
                self.page.model = "".join(self._text)
            case ["revision", "text"]:
                self.page.text = "".join(self._text)
        self._path.pop()
        self._text.clear()


def parse_page(data: bytes) -> Page:
    """Parse `<page>…</page>` (UTF-8); of several revisions the last is used. Raises `ValueError` for invalid pages."""
    handler = _PageHandler()
    parser = expat.ParserCreate("utf-8")
    # Without the buffer expat calls Python for every line and every entity.
    parser.buffer_text, parser.buffer_size = True, max(1024, len(data))
    parser.StartElementHandler, parser.EndElementHandler = handler.start, handler.end
    parser.CharacterDataHandler = handler.data
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, ValueError) as error:
        raise ValueError(f"{error} (in the page {handler.page.title!r})") from error
    return handler.page


_WIKIMEDIA = re.compile(r"//(?:[^/]*\.)?(wiki(?:pedia|source|news|books|quote|versity|voyage|media)|wiktionary)\.org/")
# Fandom under its names of today and before, and other hosts of the same kind of wikis.
_FANDOM = re.compile(r"//[^/]*\.(?:(?:fandom|gamepedia)\.com|wikia\.(?:com|org)|wiki\.gg|miraheze\.org)/")
_PROJECT = re.compile(r"(wiki(?:source|news|books|quote|versity|voyage)|wiktionary)$")


@dataclass(frozen=True)
class Header:
    """The header of an export, which describes its wiki; every field may be missing ("")."""

    name: str = ""
    """The wiki's name, e.g. "Wikipedia"."""
    database: str = ""
    """Its short name, e.g. "huwiki"."""
    base: str = ""
    """The address of its main page."""
    language: str = ""
    """Its content language (`xml:lang`)."""
    namespaces: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The wiki's own name of each namespace."""

    @property
    def licence(self) -> str:
        """CC BY-SA for Wikimedia wikis (3.0 until June 2023, then 4.0), but CC BY for Wikinews; unknown for others,
        because exports do not say."""
        wiki = _WIKIMEDIA.search(self.base)
        return "unknown" if wiki is None else "CC BY" if wiki[1] == "wikinews" else "CC BY-SA"

    @property
    def project(self) -> str:
        """The project of its wiki: "wikipedia", "wiktionary", "wikisource", "fandom", ...; "" if neither its address
        nor the name of its database says so."""
        if wiki := _WIKIMEDIA.search(self.base) or _PROJECT.search(self.database):
            return wiki[1]
        return "fandom" if _FANDOM.search(self.base) else ""

    def site(self, language: str) -> Site:
        """The wiki, in `language` if the header names none."""
        return Site(self.language or language, self.namespaces, self.project)

    def url(self, title: str) -> str:
        """The URL of a page, built as MediaWiki builds it; "" if the wiki's address is unknown."""
        path = quote(title.replace(" ", "_"), safe="/:@!$*,;()")
        return f"{self.base.rsplit('/', 1)[0]}/{path}" if self.base else ""


def parse_header(data: bytes, path: Path) -> Header:
    """Parse the data before the first page. Raises `SourceError` for a document type or malformed XML."""
    elements: list[str] = []
    facts: dict[str, str] = {}
    names: dict[int, tuple[str, ...]] = {}
    key = text = ""

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal key, text
        elements.append(name)
        key, text = attributes.get("key", ""), ""
        if name == "mediawiki":
            facts["language"] = attributes.get("xml:lang", "")

    def characters(value: str) -> None:
        nonlocal text
        text += value

    def end(name: str) -> None:
        elements.pop()
        if name == "namespace" and text:
            names[int(key)] = (text,)
        elif elements[-1:] == ["siteinfo"]:
            facts[name] = text.strip()

    def doctype(*_: object) -> None:
        raise SourceError(
            f"{path} declares a document type. MediaWiki exports never do, so such files are not accepted. Give an "
            "unchanged export."
        )

    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = characters, doctype
    try:
        parser.Parse(data.removeprefix(b"\xef\xbb\xbf").lstrip(), False)
    except (expat.ExpatError, ValueError) as error:
        raise damaged(path, data, 0, error) from error
    name, database, base, language = (facts.get(key, "") for key in ("sitename", "dbname", "base", "language"))
    return Header(name, database, base, language, names)


_PARTS = {"page", "revision", "siteinfo", "namespaces", "contributor", "title", "text", "pages"}
"""Elements below the root of an export, with which a fragment of one may begin."""
# Linear time, here and below: no pattern matches past a place where it could begin again, so each is visited once.
_INSIDE = re.compile(rb"</?(?:page|revision|timestamp|contributor|siteinfo)>|<text [^<>]*?xml:space=")
_INDEX = re.compile(rb"(?:\d{3,}:\d+:[^\n]+\n){3}")
# Possessive, here and below: white space, or a file crafted to look like XML, must take only linear time.
_ROOT = re.compile(rb"(?:<\?(?:(?!\?>).)*+\?>|<!--(?:(?!-->).)*+-->|\s++)*+<([A-Za-z!][^\s>/]*)", re.DOTALL)
_SQL = re.compile(rb"\s*+(?:--[^\n]*+\n\s*+|/\*[^\n]*+\n\s*+)*+(?:DROP TABLE|CREATE TABLE|INSERT INTO) ")
_OTHER_ROOTS = {
    "feed": "it is a file of abstracts; use the dump named pages-articles",
    "api": "it is a response of the wiki's API; use Special:Export or the dump named pages-articles",
    "rss": "it is a news feed; use the dump named pages-articles",
}
_MARKS = tuple(map(re.compile, (rb"\[\[[^\[\]\n]++\]\]", rb"\{\{[^{}]++\}\}", rb"'''", rb"(?m)^==+[^=\n]+==+\s*$")))


def root_element(head: bytes) -> str:
    """The name of the first element, or of the declaration ("!DOCTYPE") before it; "" if there is neither."""
    root = _ROOT.match(head)
    return root.group(1).decode(errors="replace") if root else ""


def no_export(path: Path, root: str) -> SourceError:
    """The error for XML whose root element is `root`, not <mediawiki>; `root` is "" if it begins with no element."""
    if root in _PARTS:
        return _piece(path, f"it begins with <{root}>")
    if not root:
        return _piece(path, "it does not begin with an element")
    remedy = _OTHER_ROOTS.get(root, "use the dump named pages-articles")
    return SourceError(f"{path} is not a MediaWiki export: its root element is <{root}>, not <mediawiki>; {remedy}.")


def refuse_fragments(path: Path, head: bytes) -> None:
    """Raise `SourceError` if a file that would pass as plain text is a fragment of a dump or belongs to one."""
    if _INSIDE.search(head):
        raise _piece(path, "it has tags of an export, but no <mediawiki> before them")
    if _INDEX.match(head):
        raise SourceError(
            f"{path} is the index of a multistream dump, which holds only titles. Give the file next to it with a "
            "name that ends in multistream.xml.bz2."
        )
    if _SQL.match(head):
        raise SourceError(
            f"{path} is a table of a database (SQL), which holds no articles. Use the dump named pages-articles."
        )
    if sum(bool(mark.search(head)) for mark in _MARKS) >= 3:
        raise SourceError(
            f"{path} looks like wikitext, and wikitext is only read inside an export. Export the pages with "
            'Special:Export, or, to keep the markup in the text, set corpus.source.format = "text".'
        )


def no_pages(path: Path, *, whole: bool) -> SourceError:
    """The error for an export without a complete page; `whole` tells whether it has its closing tag."""
    if whole:
        return SourceError(
            f"{path} contains no complete page: the export ends after its head. Name pages when you export, or give "
            "the file of the dump that contains pages."
        )
    return SourceError(f"{path} contains no complete page. Download it again.")


def _piece(path: Path, reason: str) -> SourceError:
    return SourceError(
        f"{path} is not a MediaWiki export but may be a part of one: {reason}, not <mediawiki>. Put the head of the "
        "dump (from <mediawiki> to </siteinfo>) before its first whole <page> and </mediawiki> after its last; "
        '<mediawiki xml:lang="…"> alone is enough if the head is lost.'
    )
