"""Books of a Wikisource: found among the pages of a dump, put in order and joined."""

from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from bertwright.core.log import Silent
from bertwright.core.work_split import FolderLock, StageIncomplete, WorkSplit
from bertwright.corpus.config import CorpusConfig, FilterConfig, SourceConfig, WikitextConfig
from bertwright.corpus.errors import SourceError
from bertwright.corpus.run import run
from bertwright.corpus.sources.books import join, level, title
from bertwright.corpus.sources.dump import Page
from bertwright.corpus.text import sentences

HEAD = """<mediawiki xml:lang="en"><siteinfo><sitename>Wikisource</sitename><dbname>enwikisource</dbname>
<base>https://en.wikisource.org/wiki/Main_Page</base><namespaces><namespace key="0"/>
<namespace key="104">Page</namespace><namespace key="106">Index</namespace></namespaces></siteinfo>
"""

OPENING = '<noinclude><pagequality level="{}" user="A" />{{{{rh|{}|EMMA|}}}}</noinclude>'


def scan(number: int, text: str, quality: int = 3, *, book: str = "Emma.djvu/", model: str = "proofread-page") -> str:
    """A page of a scan; its id grows as its number falls, so the dump has the book backwards."""
    body = escape(OPENING.format(quality, number) + text + "<noinclude>{{smallrefs}}</noinclude>")
    return (
        f"<page><title>Page:{book}{number}</title><ns>104</ns><id>{1000 - number}</id><revision><id>{number}</id>"
        f"<model>{model}</model><text>{body}</text></revision></page>\n"
    )


def dump(*pages: str) -> bytes:
    chapter = (
        "<page><title>Emma/Chapter 1</title><ns>0</ns><id>1</id><revision><id>1</id><model>wikitext</model>"
        '<text>{{header|title=Emma}}&lt;pages index="Emma.djvu" from=1 to=3 /&gt;</text></revision></page>\n'
    )
    return (HEAD + chapter + "".join(pages) + "</mediawiki>\n").encode()


BOOK = [
    scan(10, "{{c|THE END}}"),
    scan(3, "ful and old.\n\nHer sister came later and was ill-"),
    scan(9, "Nobody has read this 0CR text.", 1),
    scan(2, "house of {{sc|Mr}} Weston, which is <section begin=a />beauti-"),
    scan(4, "tempered, so they said.{{nop}}\n"),
    scan(1, "Emma Woodhouse lived in the large\n"),
    scan(5, "", 0),
]
SENTENCES = [
    "Emma Woodhouse lived in the large house of Mr Weston, which is beautiful and old.",
    "Her sister came later and was illtempered, so they said.",
    "THE END",
]


def corpus(path: Path, data: bytes, **settings: Any) -> tuple[list[str], dict[str, Any]]:
    """The sentences of the corpus of a dump, without a filter, and its counts."""
    path.mkdir()
    (path / "a.xml").write_bytes(data)
    config = CorpusConfig(
        source=(SourceConfig(path=str(path / "a.xml")),), language="en", filter=FilterConfig(enabled=False), workers=1,
        **settings,
    )  # fmt: skip
    artifact = run(config, path / "corpus")
    return list(sentences(artifact)), dict(artifact.counts)


def test_a_book_is_read_in_the_order_of_its_pages(tmp_path: Path) -> None:
    found, counts = corpus(tmp_path / "a", dump(*BOOK))
    assert found == SENTENCES
    assert (counts["pages"], counts["scanned_pages"], counts["books"], counts["kept"]) == (8, 5, 1, 1)
    assert counts["namespaces"] == {
        "Page, not proofread": {"pages": 1, "bytes": 137}, "Page, without text": {"pages": 1, "bytes": 107},
    }  # fmt: skip


def test_unproofread_pages_are_read_on_demand(tmp_path: Path) -> None:
    found, counts = corpus(tmp_path / "a", dump(*BOOK), wikitext=WikitextConfig(unproofread_pages=True))
    assert "Nobody has read this 0CR text." in found
    assert counts["scanned_pages"] == 6


def test_books_are_the_same_without_the_search_for_templates(tmp_path: Path) -> None:
    assert corpus(tmp_path / "a", dump(*BOOK), wikitext=WikitextConfig(expand_templates=False))[0] == SENTENCES


def test_two_ranks_make_the_books_of_one(tmp_path: Path) -> None:
    others = [scan(n, f"Page {n} of book {b} is here.", book=f"B{b} 0") for b in range(5) for n in range(1, 4)]
    alone, _ = corpus(tmp_path / "alone", dump(*BOOK, *others))
    path = tmp_path / "two"
    path.mkdir()
    (path / "a.xml").write_bytes(dump(*BOOK, *others))
    config = CorpusConfig(
        source=(SourceConfig(path=str(path / "a.xml")),), language="en", filter=FilterConfig(enabled=False), workers=1
    )
    for rank in (0, 1):
        with FolderLock(path, shared=True) as lock:
            try:
                artifact = run(config, path / "corpus", share=WorkSplit(rank, 2, lock))
            except StageIncomplete:
                assert rank == 0
    assert list(sentences(artifact)) == alone
    assert not list(path.rglob("*.pages-*"))


def test_old_exports_and_books_of_image_files(tmp_path: Path) -> None:
    pages = [scan(n, f"Seite {n} ist hier.", book="Sagen 0", model="wikitext") for n in (3, 12, 2)]
    assert corpus(tmp_path / "a", dump(*pages))[0] == ["Seite 2 ist hier.", "Seite 3 ist hier.", "Seite 12 ist hier."]


class Sayings(Silent):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)


def test_pages_of_scans_are_missed(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(dump(scan(1, "x", 1)))
    log = Sayings()
    config = CorpusConfig(source=(SourceConfig(path=str(tmp_path / "a.xml")),), language="en", workers=1)
    with pytest.raises(SourceError, match="no document is left"):
        run(config, tmp_path / "corpus", log)
    assert any("1 pages" in line and "unproofread_pages" in line for line in log.said)


@pytest.mark.parametrize(("page", "book"), [
    ("Page:Emma.djvu/12", "Emma"),
    ("Страница:Толковый словарь. Том 1 (1880).pdf/117", "Толковый словарь. Том 1 (1880)"),
    ("পাতা:বই.pdf/১২", "বই"), ("Seite:Sagen 012.jpg", "Sagen"),
    ("Seite:Die Gartenlaube (1898) 0000 b.jpg", "Die Gartenlaube (1898)"), ("Strona:Pan Tadeusz.djvu/7", "Pan Tadeusz"),
    ("Page:Poster", "Poster"),
])  # fmt: skip
def test_titles(page: str, book: str) -> None:
    assert title(page) == book


def test_levels() -> None:
    assert (
        level(Page("Page:A/1", 104, model="proofread-page", text='<noinclude><pagequality level="4" user="x" />')) == 4
    )
    assert level(Page("Page:A/1", 104, model="proofread-page", text="no head")) == 1
    assert level(Page("Page:A/1", 104, text="no head")) is None
    assert level(Page("Help", 0, text='<pagequality level="4" />')) is None


@pytest.mark.parametrize(("before", "after", "joined"), [
    ("La {{tiret|beau|té}}", "{{tiret2|beau|té}} du jour", "La beauté du jour"),
    (
        'the {{hws|beau|beauty}}<section end="a" />', '<section begin="b" />{{hwe|ty|beauty}}, so',
        'the beauty<section end="a" /><section begin="b" />, so',
    ),
    ("ha {{Pt|fini-|}}", "{{Pt|to|finito}} di", "ha finito di"),
    ("beauti-<section end=a />", "<section begin=b />ful", "beauti<section end=a /><section begin=b />ful"),
    ("Anglo{{peh}}", "Saxon", "Anglo-Saxon"),
    ("by {{sc|A|b}}", "{{sc|A|b}} came", "by {{sc|A|b}}\n{{sc|A|b}} came"),
])  # fmt: skip
def test_a_word_goes_on_over_the_end_of_a_page(before: str, after: str, joined: str) -> None:
    assert join([before, after]) == joined


def test_join() -> None:
    assert join(["a ", "b", "", "\n\nc-", "d-", "E"]) == "a\nb\n\n\ncd-\nE"
