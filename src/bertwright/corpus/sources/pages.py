"""HTML pages: a folder of them as Kiwix (`zimdump dump`), Parsoid or a browser saves them, one page a file.

Pages may also follow each other in one file (`cat *.html`), each beginning with its document type.
"""

from __future__ import annotations

import codecs
import re
from urllib.parse import unquote

from bertwright.corpus.config import SourceConfig
from bertwright.corpus.sources.dump import Header
from bertwright.corpus.sources.file import ExtractJob, File, Reader
from bertwright.corpus.sources.format import Article, PassedOverError
from bertwright.corpus.sources.records import TruncatedRecordError, document, text_format

# Shorter than `records._MARK`, as what follows the end of a record has to be.
_NEXT = re.compile(rb"(?:\n|(?<=</html>))(?=<!doctype html)", re.IGNORECASE)
_FIRST = re.compile(rb"(?:\s++|<!--(?:(?!-->).)*+-->|<\?xml[^>]*+>)*+(?:<!doctype\s+html|<html[\s>])", re.I | re.DOTALL)
_CHARSET = re.compile(
    rb"<meta\s[^>]*?charset\s*=\s*[\"']?\s*([\w:.-]+)|<\?xml\s[^>]*?encoding\s*=\s*[\"']([\w:.-]+)", re.I
)
_HEAD = 2**14
_SUFFIX = re.compile(r"\.x?html?(?:\.(?:bz2|gz|xz|zst))?$", re.IGNORECASE)
_END = re.compile(r"</(?:html|body)\s*>", re.IGNORECASE)
# HTML's rule (encoding.spec.whatwg.org): these names mean the code page of Windows that extends them.
_SUPERSETS = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874", "gb2312": "gb18030",
    "gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949", "utf-16": "utf-8", "utf-16-le": "utf-8",
    "utf-16-be": "utf-8",
}  # fmt: skip


def matches(head: bytes) -> bool:
    """Whether the text begins like an HTML page."""
    return _FIRST.match(head) is not None


def charset(head: bytes) -> str:
    """The encoding that a page declares, by Python's name; "utf-8" if it declares none that is known."""
    found = _CHARSET.search(head)
    try:
        name = codecs.lookup((found[1] or found[2]).decode("ascii")).name if found else "utf-8"
        "".encode(name)  # not every codec is one of text
    except (LookupError, UnicodeError):
        return "utf-8"
    return _SUPERSETS.get(name, name)


def _parse(job: ExtractJob, offset: int, html: str) -> Article | None:
    from bertwright.corpus.html_text import read_html  # loaded only where there are pages

    page = read_html(html, job.config.wikitext.maths)
    if page.kind == "redirects":
        raise PassedOverError(page.kind)
    if page.kind == "disambiguations" and not job.config.keep_disambiguation:
        raise PassedOverError(page.kind)
    if not page.paragraphs:
        return None
    # The end tags may be left out, but no program that saves pages does so.
    if not _END.search(html, max(0, len(html) - 4096)) and job.piece.cut:
        raise TruncatedRecordError
    title = page.title or unquote(_SUFFIX.sub("", job.file.path.name)).replace("_", " ")
    facts = document(job, "", {"title": title, "url": page.url, "revision": page.revision}, offset).facts
    return Article(facts, page.paragraphs)


def _read_header(file: File, config: SourceConfig) -> Header:
    """The address of the first page, which tells the licence of a wiki of Wikimedia."""
    from bertwright.corpus.html_text import page_address

    head = b""
    for block in Reader(file, size=_HEAD):
        head += block
        if len(head) >= _HEAD:
            break
    return Header(base=page_address(head[:_HEAD].decode(errors="replace")))


FORMAT = text_format("html", matches, lambda _: _NEXT, _parse, header=_read_header, many_files=True, bytes_per_text=6)
