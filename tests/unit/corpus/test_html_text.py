"""What is read of HTML pages: those of MediaWiki as their wikitext would be, and any other page."""

import pytest
from tests.rows import each_row

pytest.importorskip("selectolax", reason="selectolax is not installed: pip install 'bertwright[html]'")

from bertwright.corpus.html_text import read_html


def texts(html: str, *, wiki: bool = True) -> list[tuple[str | None, str]]:
    return [(paragraph.heading, paragraph.text) for paragraph in read_html(html, wiki=wiki).paragraphs]


@each_row(
    ("html", "expected"),
    [
        ("<p>Egy <b>mondat</b>,<br>két\n sor.</p>", ["Egy mondat,", "két sor."]),
        ("<ul><li>Egy<ul><li>kettő</li></ul></li><li>három</ul>", ["Egy", "kettő", "három"]),
        ("<p>Állítás.<sup class='mw-ref reference'><a href='#1'>[1]</a></sup> Más.", ["Állítás. Más."]),
        ("<p>Állítás<sup typeof='mw:Extension/ref'>[1]</sup>, és.", ["Állítás, és."]),
        ("<p>10<sup>6</sup> m<sup>2</sup>", ["10⁶ m²"]),
        ("<table><tr><td>táblázat</table><p>Szöveg.", ["Szöveg."]),
        ("<div class='thumb tright'>kép</div><figure><figcaption>kép</figcaption></figure><p>a.", ["a."]),
        ("<div class='hatnote'>Lásd még</div><div role='navigation'>vissza</div><p>a.", ["a."]),
        ("<div about='#mwt3' typeof='mw:Transclusion'>Ez a szócikk csonk.</div><p>a.", ["a."]),
        ("<div about='#mwt3' class='div-col'><ul><li>egy</li></ul></div>", ["egy"]),
        ("<p>Az <span about='#mwt1' typeof='mw:Transclusion'>5 km</span> út.", ["Az 5 km út."]),
        ("<ol class='references'><li>Forrás</ol><div class='reflist'>x</div><p>a.", ["a."]),
        ("<p>a <span style='display:none'>rejtett</span>b", ["a b"]),
        ("<p title='a > b'>Nagyobb &lt; mint &amp; a &nbsp; jel", ["Nagyobb < mint & a jel"]),
        ("<pre>kód</pre><div class='mw-highlight'>kód</div><p>a.", ["a."]),
        ("<p>(<span class='noprint'>x</span>) Üres.", ["Üres."]),
        ("<ruby>漢<rp>(</rp><rt>かん</rt></ruby>字", ["漢字"]),
        ("<script>var a = '<p>x</p>';</script><style>p{}</style><p>a.", ["a."]),
        ("<p>&notanentity; és &#0; &#xD800; vége", ["¬anentity; és \ufffd \ufffd vége"]),
        ("", []),
    ],
)
def test_the_text_of_a_page_of_a_wiki(html: str, expected: list[str]) -> None:
    assert [text for _, text in texts(html)] == expected


def test_headings_are_attached_to_what_follows_them() -> None:
    html = (
        "<h2>Üres</h2><h2><span class='mw-headline'>Élete</span><span class='mw-editsection'>[szerk]</span></h2>"
        "<p>Egy.</p><p>Kettő.</p><div class='mw-heading'><h3>Halála</h3></div><ul><li>Három.</ul>"
    )
    assert texts(html) == [("Élete", "Egy."), (None, "Kettő."), ("Halála", "Három.")]


def test_formulas_are_dropped_or_their_tex() -> None:
    html = "<p>Az <math alttext='{\\displaystyle x^{2}}'><mi>x</mi></math> szám.</p>"
    assert texts(html) == [(None, "Az szám.")]
    assert [paragraph.text for paragraph in read_html(html, "tex").paragraphs] == ["Az x^{2} szám."]


def test_what_a_page_says_of_itself() -> None:
    html = (
        "<html><head><title>Híd – Wikipédia</title><link rel=canonical href='//hu.wikipedia.org/wiki/H%C3%ADd'></head>"
        "<body><h1 id=firstHeading>Híd</h1><div id=mw-content-text><p>A híd.</div><footer>Lap</footer></body></html>"
    )
    page = read_html(html)
    assert (page.title, page.url, page.kind) == ("Híd", "https://hu.wikipedia.org/wiki/H%C3%ADd", "article")
    assert [paragraph.text for paragraph in page.paragraphs] == ["A híd."]
    redirect = "<meta http-equiv='refresh' content='0;URL=./Más'><p>a"
    assert read_html(redirect).kind == "redirects"
    assert read_html("<meta http-equiv='refresh' content='300'><p>a").kind == "article"
    assert read_html("<meta property='mw:PageProp/disambiguation'><p>a").kind == "disambiguations"


WEB = """<html><body><nav><a href=1>Címlap</a></nav><header><a href=2>Belépés</a></header><div class="layout">
<div class="sidebar"><p>Hirdetés, amely nem a szöveg része, de hosszú, hogy ne a rövidsége árulja el.</p></div>
<article><h1>Cím</h1><p>Az első bekezdés elég hosszú ahhoz, hogy a lap szövegének lássék, és nem hivatkozás.</p>
<ul><li><a href=3>Kapcsolódó cikk</a></li></ul><h2>Rész</h2><p>A második bekezdés is ilyen.</p>
<table><tr><th>a<td>1</table></article></div><div id="comments"><p>Hozzászólás.</div><footer>Jogok</footer></body>"""


def test_a_page_of_the_web_without_navigation() -> None:
    assert texts(WEB, wiki=False) == [
        (None, "Az első bekezdés elég hosszú ahhoz, hogy a lap szövegének lássék, és nem hivatkozás."),
        ("Rész", "A második bekezdés is ilyen."),
    ]


def test_a_name_that_usually_means_navigation_hides_no_whole_text() -> None:
    text = "Ez a lap szövege, akárhogy hívják is, és elég hosszú ahhoz, hogy szövegnek lássék a többi között."
    assert texts(f"<div class='sidebar-fixed'><p>{text}</p></div>", wiki=False) == [(None, text)]


def test_a_table_that_only_arranges_a_page_is_read() -> None:
    long = "Egy mondat a régi lapról. " * 20
    assert texts(f"<table><tr><td>menü<td>{long}</table>", wiki=False)[-1][1] == long.strip()


def test_hostile_pages_are_read_in_linear_time() -> None:
    assert texts("<div>" * 100_000 + "x") == [(None, "x")]
    assert texts("<div>" * 1000 + "x") == [(None, "x")]
    assert texts("<b><p>" * 3000 + "x")[-1] == (None, "x")
    assert texts("<" * 100_000 + "\0\x01") == []
