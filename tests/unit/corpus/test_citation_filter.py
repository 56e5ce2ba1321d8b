"""Which paragraphs of an article are references."""

import re

from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from bertwright.corpus.citation_filter import detect_references
from bertwright.corpus.sources.format import Paragraph

PROSE = [
    "The city was founded in 1237 and had 3,669,491 inhabitants in 2019, more than any other city of the country.",
    "J. R. R. Tolkien published The Hobbit (1937) in London, and his son edited what he had left unfinished.",
    "Between 1871 and 1918 it was the capital of the Empire; from 1918 to 1933, of the Republic.",
    "Die Universität wurde 1810 gegründet; Hegel lehrte dort bis zu seinem Tod im November 1831.",
    "У 1922 році місто стало столицею, а населення зросло до 513 тис. осіб (1926).",
    "1949年10月7日に東ドイツが成立し、東ベルリンがその首都となった。",
]


def found(*paragraphs: tuple[str, str | None]) -> list[bool]:
    return list(detect_references([Paragraph(text, heading) for text, heading in paragraphs]))


@each_row(
    "text",
    [
        "Taylor, Frederick. The Berlin Wall. London: Bloomsbury, 2006. ISBN 978-0-7475-8554-1",
        "Knuth, D. (1997). The Art of Computer Programming. Vol. 1, pp. 12–19.",
        "Срібняк І. Нормани в Італії // Історія: К., 1998. — С. 15-24.",
        "Παπαγεωργίου Γ., Οι συντεχνίες στα Γιάννενα: Αθήνα, 1988.",
        "富永健一『社会学講義』中央公論社、1995年 ISBN 978-4-12-101242-5",
        "ISBN 9784778320645（2008年8月）",
        "http://www.preilusiers.lv/page/index/14",
        "Weinberg, G., doi:10.1000/182",
    ],
)
def test_citation_is_detected_by_its_form(text: str) -> None:
    assert found((PROSE[0], None), (text, None), (PROSE[1], None)) == [False, True, False]


def test_a_long_paragraph_with_the_weight_of_a_citation_is_prose() -> None:
    text = "The edition {} has the number ISBN 9780747585541 on the back of its cover, below the price"
    short, long = text.format("of 1998"), text.format("that most libraries of the country lend to their readers today")
    assert found(*((each, None) for each in (*PROSE[:4], short, long))) == [False] * 4 + [True, False]


@each_row(
    ("heading", "texts"), [(None, PROSE), ("History", PROSE), ("Література", PROSE[::5]), ("参考文献", PROSE[::5])]
)
def test_prose_is_never_a_reference(heading: str | None, texts: list[str]) -> None:
    pairs = [(text, heading if i == 0 else None) for i, text in enumerate(texts)]
    assert found(*pairs) == [False] * len(texts)


@each_row(
    "heading",
    ["Літаратура", "Weiterführende Literatur und Quellen", "মূল্য", "Bøkur", "Références", "Notas e referências"],
)
def test_a_section_that_lists_sources_goes_whole(heading: str) -> None:
    sources = [
        ("Antony Beevor: Berlin. Valby: Borgen, 2002. - 519 s.", heading),
        ("R. G. Grant: Berlinmuren. Holte: Flachs, 1998. - 64 s.", None),
        ("Den store guide", None),
    ]
    assert found(("Before it.", "History"), *sources, ("After it.", "Art")) == [False, True, True, True, False]


def test_a_section_of_a_list_of_sources_keeps_its_sentences() -> None:
    note = "The city archives hold many more papers that nobody has looked at so far."
    sources = ("Beevor, A. Berlin (2002), p. 12.", "References"), (note, None), ("Smith, J. Wall. 1999.", None)
    assert found(*sources) == [True, False, True]


def test_years_of_birth_are_not_references() -> None:
    births = [("1814 — Тарас Шевченко, український поет", "Народились"), ("1874 — Софія Левицька, художниця", None)]
    assert found(*births) == [False, False]


YEAR = r"(?:1[4-9]|20)\d\d[a-z]?"
SIGN = r"(?:1[4-9]|20)[0-9][0-9]|97[89]|[0-9]-[0-9]|10\.[0-9]{4}|[0-9]{8}|https?:|www\."
MAIN = {
    r"\b(?:ISBN|ISSN|OCLC|DOI|doi|PMID|JSTOR|LCCN|arXiv)\b|\b97[89][- ]?\d[\d -]{7,}\d\b|\b10\.\d{4,9}/\S": 3,
    r"\b\d{1,5}-\d{2,7}-\d{1,7}-[\dXx]\b": 3,
    r"https?://|\bwww\.": 2,
    rf"[:—–]\s?[^\s.:,][^:,]{{0,60}},\s?{YEAR}(?!\d)": 2,
    rf"[(（\[]{YEAR}[)）\]]|(?<!\d){YEAR}\W{{0,3}}$": 1,
}
"""What speaks for a citation, each as one pattern, and how much."""
MORE = (
    r"(?<!\d)\d{1,3}\s?[-–—]\s?\d{1,3}(?!\d)|(?:\b[^\W\d_]{1,4}\.|№)\s?\d{1,3}(?!\d)|\b\d{2,4}\s[^\W\d_]{1,2}\.|[頁页]",
    r"(?<!\w)[^\W\d_a-z]\.\s?(?:[^\W\d_a-z]\.|[^\W\d_]{3,})|[^\W\d_]{3,},\s[^\W\d_]\.",
)
PIECES = st.sampled_from([
    *"0129-–.,:;([)] XaJбЖ№頁\xa0_/", "1999", "(2001a)", "97", "978-1-23-4567-X", "10.1234/5", "ISBN", "doi:", "arXiv",
    "httpd", "http://a.b/c", "www.a.de", "Smith, J.", "J. R. Roe", "vol. 12", "12 s.", ": Kyiv, 1998", "word ", "слов ",
])  # fmt: skip


@given(st.lists(PIECES, min_size=1, max_size=6).map("".join))
def test_a_citation_weighs_what_the_whole_patterns_say(text: str) -> None:
    weight = sum(weight for pattern, weight in MAIN.items() if re.search(pattern, text))
    weight += sum(bool(re.search(pattern, text)) for pattern in MORE) if weight else 0
    is_address = sum(map(len, re.findall(r"(?:https?://|www\.)\S+", text))) > len(text) / 2
    has_sign = re.search("[0-9/]", text) is not None and re.search(SIGN, text) is not None
    assert found((text, None)) == [has_sign and (weight >= 3 or is_address)]
