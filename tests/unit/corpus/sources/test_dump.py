from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each_row

from bertwright.corpus.errors import SourceError
from bertwright.corpus.sources.dump import Header, PageSplitter, parse_header, parse_page

PATH = Path("x.xml")
HEADER = b"""<mediawiki xml:lang="hu"><siteinfo><sitename>Wikip\xc3\xa9dia</sitename><dbname>huwiki</dbname>
<base>https://hu.wikipedia.org/wiki/Kezd%C5%91lap</base><namespaces><namespace key="0" />
<namespace key="6">F\xc3\xa1jl</namespace></namespaces></siteinfo>"""
PAGES = [f"<page><title>{i}</title><text>{'a ' * i}&lt;page&gt; &amp;</text></page>".encode() for i in range(1, 6)]


def test_header_facts() -> None:
    header = parse_header(HEADER, PATH)
    assert header == Header("Wikipédia", "huwiki", "https://hu.wikipedia.org/wiki/Kezd%C5%91lap", "hu", {6: ("Fájl",)})
    assert header.licence == "CC BY-SA"
    assert header.url("Két híd?") == "https://hu.wikipedia.org/wiki/K%C3%A9t_h%C3%ADd%3F"


def test_the_licence_is_that_of_the_project() -> None:
    licences = {
        site: Header(base=f"https://en.{site}.org/wiki/Main_Page").licence for site in ("wikipedia", "wikinews")
    }
    assert licences == {"wikipedia": "CC BY-SA", "wikinews": "CC BY"}
    assert Header(base="https://a.fandom.com/wiki/B").licence == "unknown"


@pytest.mark.parametrize(("base", "database", "project"), [
    ("https://fr.wikisource.org/wiki/Accueil", "", "wikisource"),
    ("https://wikisource.org/wiki/X", "sourceswiki", "wikisource"),
    ("", "dewikivoyage", "wikivoyage"), ("https://a.fandom.com/wiki/B", "a", "fandom"),
    ("https://minecraft.gamepedia.com/X", "x", "fandom"), ("https://b.wiki.gg/wiki/B", "x", "fandom"),
    ("https://wiki.example.org/B", "x", ""),
])  # fmt: skip
def test_the_project_of_a_wiki(base: str, database: str, project: str) -> None:
    assert Header(base=base, database=database).project == project


def test_header_without_siteinfo_is_empty() -> None:
    header = parse_header(b"<mediawiki>", PATH)
    assert (header.url("x"), header.licence, header.namespaces) == ("", "unknown", {})


def test_document_type_is_refused() -> None:
    with pytest.raises(SourceError, match="document type"):
        parse_header(b'<?xml version="1.0"?><!DOCTYPE mediawiki [<!ENTITY a "b">]><mediawiki>', PATH)


def test_page_facts() -> None:
    page = parse_page(
        b'<page><title>A &amp; B</title><ns>0</ns><id>12</id><redirect title="C" /><revision><id>34</id>'
        b"<parentid>5</parentid><contributor><id>99</id></contributor><model>wikitext</model>"
        b"<text>x &lt;ref&gt;\n\xc5\x91</text></revision></page>"
    )
    assert (page.title, page.namespace, page.id, page.revision, page.redirect) == ("A & B", 0, 12, 34, True)
    assert page.text == "x <ref>\nő"


def test_last_of_several_revisions_wins() -> None:
    revision = "<revision><id>{0}</id><text>text {0}</text></revision>"
    page = parse_page(f"<page><title>a</title>{revision.format(1)}{revision.format(2)}</page>".encode())
    assert (page.revision, page.text) == (2, "text 2")


@each_row(
    ("data", "reason"),
    [
        (b"<page>" + b"<a>" * 10_000 + b"</a>" * 10_000 + b"</page>", "nested deeper"),
        (b"<page><title>T</title><text>&unknown;</text></page>", "undefined entity"),
        (b"<page><title>T</title><id>seven</id></page>", "invalid literal"),
        (b"<page><title>T</title><text>\xff</text></page>", "invalid token"),
        (b"<page><title>T</title><page></page>", "no element found"),
    ],
)
def test_malformed_pages_are_value_errors(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_page(data)


def split(data: bytes, size: int, *, first: bool = False) -> tuple[list[bytes], PageSplitter]:
    splitter = PageSplitter(PATH, first=first)
    return list(splitter.pages(data[i : i + size] for i in range(0, len(data), size))), splitter


@settings(max_examples=100)
@given(st.integers(1, 400), st.integers(0, 400), st.binary(max_size=3).filter(lambda b: b"<" not in b))
def test_pages_do_not_depend_on_blocks_and_only_whole_ones_come(size: int, cut: int, gap: bytes) -> None:
    data = b"<mediawiki>" + b"\n".join(PAGES)
    data = data[: len(data) - cut]
    whole, splitter = split(data, size, first=True)
    assert whole == PAGES[: data.count(b"</page>")]
    assert splitter.bytes == len(data)
    tail = data.rpartition(b"</page>")[2] if whole else data[len(b"<mediawiki>") :]
    assert splitter.rest == (tail.lstrip() if b"<page>" in tail or whole else b"")


def test_offset_is_where_the_page_begins() -> None:
    data = b"  \n".join(PAGES)
    splitter = PageSplitter(PATH, first=False)
    for page in splitter.pages([data[:100], data[100:]]):
        assert data[splitter.offset :].startswith(page)


@each_row("between", [b"<foo/>", b"text", b"</mediawiki><foo>"])
def test_data_between_pages_is_an_error(between: bytes) -> None:
    with pytest.raises(SourceError, match="expected after a page"):
        split(PAGES[0] + between + PAGES[1], 1000)


def test_a_page_without_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertwright.corpus.sources.dump.MAX_DOCUMENT", 1000)
    blocks = (b"<page>" + b"x" * 100 for _ in range(10**9))
    with pytest.raises(SourceError, match="no page or document ends"):
        list(PageSplitter(PATH, first=False).pages(blocks))
