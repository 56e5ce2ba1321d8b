"""A small export builder: MediaWiki XML from (title, wikitext) pairs, in any packaging."""

import bz2
import lzma
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from tests.conftest import SHARED

HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="hu">
  <siteinfo>
    <sitename>Wikipédia</sitename>
    <dbname>huwiki</dbname>
    <base>https://hu.wikipedia.org/wiki/Kezd%C5%91lap</base>
    <namespaces>
      <namespace key="0" case="first-letter" />
      <namespace key="1" case="first-letter">Vita</namespace>
      <namespace key="6" case="first-letter">Fájl</namespace>
      <namespace key="14" case="first-letter">Kategória</namespace>
    </namespaces>
  </siteinfo>
"""
TAIL = "</mediawiki>\n"


def page(number: int, title: str, text: str, *, namespace: int = 0, extra: str = "") -> str:
    return f"""  <page>
    <title>{escape(title)}</title>
    <ns>{namespace}</ns>
    <id>{number}</id>
{extra}    <revision>
      <id>{number + 1000}</id>
      <contributor><username>x</username><id>7</id></contributor>
      <model>wikitext</model>
      <text xml:space="preserve">{escape(text)}</text>
    </revision>
  </page>
"""


def article(number: int) -> str:
    """Wikitext of an article of four paragraphs, different for every number."""
    return f"""'''A {number}. híd''' egy folyó fölött ível át, és naponta sokan járnak rajta. Három évig épült.

== Története ==
A híd alapkövét {number} munkás tette le tavasszal. A következő nyáron készült el a középső íve.

* Az északi oldalán gyalogosok járnak.
* A déli oldalán kerékpárút vezet.

[[Kategória:Hidak]]
"""


@pytest.fixture
def export() -> Callable[..., bytes]:
    """`export(pages)`: the XML of pages made by `page`."""

    def build(pages: Sequence[str], *, head: str = HEAD, tail: str = TAIL) -> bytes:
        return (head + "".join(pages) + tail).encode()

    return build


@pytest.fixture
def bridges() -> list[str]:
    """Forty articles as `<page>` elements."""
    return [page(i, f"{i}. híd", article(i)) for i in range(1, 41)]


@pytest.fixture
def new_page() -> Callable[..., str]:
    return page


@pytest.fixture
def multistream() -> Callable[..., bytes]:
    """Pages in multistream bz2: head, `per_stream` pages a stream, tail."""

    def build(pages: Sequence[str], per_stream: int = 5) -> bytes:
        groups = ["".join(pages[i : i + per_stream]) for i in range(0, len(pages), per_stream)]
        return b"".join(bz2.compress(part.encode()) for part in [HEAD, *groups, TAIL])

    return build


@pytest.fixture
def packagings(export: Callable[..., bytes], multistream: Callable[..., bytes]) -> Callable[..., dict[str, bytes]]:
    """The same pages as every kind of file that can be read."""

    def build(pages: Sequence[str]) -> dict[str, bytes]:
        plain = export(pages)
        return {
            "a.xml": plain,
            "b.xml.bz2": bz2.compress(plain),
            "c.xml.bz2": multistream(pages),
            "d.xml.xz": lzma.compress(plain),
            "e.xml": plain.decode().encode("utf-16"),
            "f": b"\xef\xbb\xbf" + plain,
            "g.xml.bz2": b"".join(bz2.compress(plain[i : i + 3000]) for i in range(0, len(plain), 3000)),
            "h.xml.xz": lzma.compress(plain.decode().encode("utf-16")),
        }

    return build


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut even the smallest file into many pieces."""
    monkeypatch.setattr("bertwright.corpus.sources.pieces.PLAIN_BYTES", 2000)
    monkeypatch.setattr("bertwright.corpus.sources.pieces.BZ2_BYTES", 100)
    monkeypatch.setattr("bertwright.corpus.sources.file.BLOCK", 700)
    monkeypatch.setattr("bertwright.corpus.sources.pieces.BLOCK", 700)


@pytest.fixture
def shared() -> Path:
    """The folder of real data, where this checkout has one beside it."""
    if not (SHARED / "data").is_dir():
        pytest.skip(f"no real data at {SHARED}; set BERTWRIGHT_SHARED")
    return SHARED / "data"
