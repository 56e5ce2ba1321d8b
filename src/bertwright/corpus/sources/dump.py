"""MediaWiki XML exports: splitting them into header and pages, and parsing pages (`header` parses headers).

In an export every "<" of a text is written "&lt;", so `<page>` and `</page>` can only be the tags themselves: pages
are found in the byte stream by searching for the tags, and expat parses each page separately. Errors thus have an
offset and a page name, a document type cannot be declared, and no tree is kept in memory (schema:
mediawiki.org/xml/export-0.11).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.parsers import expat

from bertwright.corpus.errors import MAX_DOCUMENT, SourceError, too_long

PAGE, PAGE_END, END = b"<page>", b"</page>", b"</mediawiki>"
_MAX_DEPTH = 32


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

    During iteration `offset` is the position of the current page in the stream; afterwards `bytes` is the length of the
    stream and `rest` the data after the last complete page.
    """

    def __init__(self, path: Path, *, first: bool) -> None:
        self.offset, self.bytes, self.rest = 0, 0, b""
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
        if start < 0 or (data[:start].strip() and not self._in_header):
            raise SourceError(
                f"{self._path}: <page> is expected after a page, but {data.lstrip()[:60]!r} was found. "
                "The file is damaged; download it again."
            )
        self._in_header, self.offset = False, offset + start
        return data[start:]


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
