"""Lists of references: paragraphs that are citations by their shape, and sections that consist of them.

A citation is recognised in any language by its parts: book numbers and identifiers, addresses, a year in brackets or
at the end, a place with publisher and year, pages, initials. One of these is common in prose, so they are weighed; in a
section whose name says that it lists sources, or most of which are citations, less is enough, and lines that are no
sentences go too. A paragraph of prose stays wherever it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from bertwright.corpus.article import Paragraph
from bertwright.corpus.words import count_tokens

_YEAR = r"(?:1[4-9]|20)\d\d[a-z]?"
_SIGN = re.compile(r"(?:1[4-9]|20)[0-9][0-9]|97[89]|[0-9]-[0-9]|10\.[0-9]{4}|[0-9]{8}|https?:|www\.")
"""Every citation has one of these: a year, a number of a book or an article, an address."""
_MAY_HAVE_SIGN = re.compile("[0-9/]")
_MAIN = tuple(
    (re.compile(pattern), weight)
    for pattern, weight in (
        (r"\b(?:ISBN|ISSN|OCLC|DOI|doi|PMID|JSTOR|LCCN|arXiv)\b|\b97[89][- ]?\d[\d -]{7,}\d\b|\b10\.\d{4,9}/\S", 3),
        (r"\b\d{1,5}-\d{2,7}-\d{1,7}-[\dXx]\b", 3),
        (r"https?://|\bwww\.", 2),
        (rf"[:—–]\s?[^\s.:,][^:,]{{0,60}},\s?{_YEAR}(?!\d)", 2),  # Oxford: University Press, 1999
        (rf"[(（\[]{_YEAR}[)）\]]|(?<!\d){_YEAR}\W{{0,3}}$", 1),
    )
)
_MORE = (
    re.compile(  # pages 12–34; vol. 3, № 3; 519 s.; the sign for page
        r"(?<!\d)\d{1,3}\s?[-–—]\s?\d{1,3}(?!\d)|(?:\b[^\W\d_]{1,4}\.|№)\s?\d{1,3}(?!\d)|\b\d{2,4}\s[^\W\d_]{1,2}\.|[頁页]"
    ),
    re.compile(  # J. R. Smith; Smith, J.
        r"(?<!\w)[^\W\d_a-z]\.\s?(?:[^\W\d_a-z]\.|[^\W\d_]{3,})|[^\W\d_]{3,},\s[^\W\d_]\."
    ),
)
"""Each speaks for a citation, once one of the main signs does."""
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+")
_MOST_CHARACTERS, _MOST_WORDS = 900, 60
"""From which a paragraph is no single citation."""
_CITATION = 3
"""Weight from which a paragraph is a citation anywhere, and 4 for a long one; in a section of sources 1, and 2."""
_LONG = 20
"""Words from which a paragraph is long."""
_MOST, _SOME = 0.5, 0.3
"""Share of the characters of a section in citations from which it is one of sources, whatever its name; and in what
may be one, where it is called so: a section on literature is called like one of sources."""
_SENTENCE_END = (".", "!", "?", "。", "！", "？", "।", "։", "؟", "۔", "။", "។", "…")
_SENTENCE = 8
"""Fewest words of a paragraph that is taken for a sentence in a section of sources."""
_NAMES = re.compile(
    # Latin letters
    "referen|riferiment|referin|bibliogra|^literatur|^sekundärlit|^litterat|^literat[ūú]r|^literatuur|^sources|quellen|einzelnachw"
    "|fußnoten|^notes|^notas?$|^note$|^noter$|^fonti$|^fontes$|^fuentes$|^fonts$|^izvori|^viri$|^zdroje|źródła|przypisy"
    "|források|jegyzetek|irodalom|lähteet|viitteet|kirjallisuu|^viited|^allikad|^kirjandus|^källor|^kilder|referanser"
    "|fodnoter|heimildir|tilvísanir|^bronnen|voetnoten|kaynak|dipnot|ədəbiyyat|istinad|mənbə|manbalar|adabiyot|nguồn"
    "|tham khảo|chú thích|thư mục|đọc thêm|erreferentz|iturriak|cyfeiriad|ffynonell|tagairtí|foinsí|daveoù|marejeo"
    "|verwysing|^bronne$|olūti|atsauc|^avoti|šaltiniai|išnašos|burime|further reading|weblit|lectures compl|läs vidare"
    # Greek, Cyrillic, Armenian, Georgian
    "|βιβλιογραφ|παραπομπ|^πηγές|библиогра|бібліогр|бібліягр|^литератур|^літератур|^літаратур|примечани|источник|примітк"
    "|джерела|крыніц|бележки|източници|^извори|напомене|референц|дереккөз|әдебиет|әдәбият|искәрмәләр|адабиёт|сарчашма"
    "|^գրականություն|աղբյուրներ|ծանոթագր|წყარო|^ლიტერატურა|სქოლიო"
    # Hebrew, Arabic, the scripts of India, Thai, Burmese, Khmer
    "|הערות שוליים|לקריאה נוספת|מקורות|מראה מקום|مراجع|مصادر|هوامش|منابع|پانویس|حوالہ جات|مآخذ|سەرچاوە"
    "|^संदर्भ|^सन्दर्भ|^स्रोत|अधिक वाचन|তথ্যসূত্র|^উৎস|গ্রন্থপঞ্জি|আরও পড়ুন|மேற்கோள்|உசாத்துணை|మూలాలు|ಉಲ್ಲೇಖ|അവലംബ|ਹਵਾਲੇ|સંદર્ભ"
    "|อ้างอิง|บรรณานุกรม|ကိုးကား|ឯកសារយោង"
    # Chinese, Japanese, Korean
    "|参考|參考|脚注|注释|註釋|注釋|^出典|関連文献|참고|각주|출처"
)
"""What sections of sources are called."""


def references_in(paragraphs: list[Paragraph]) -> Iterator[bool]:
    """Whether each paragraph of an article is a reference, in order."""
    for (_, name), group in groupby(_sections(paragraphs), key=itemgetter(0)):
        section = [paragraph for _, paragraph in group]
        weights = [_weight(paragraph.text) for paragraph in section]
        sources = any(weights) and _are_sources(name, section, weights)
        for paragraph, weight in zip(section, weights, strict=True):
            yield _is_listed(paragraph.text, weight) if sources else _is_citation(paragraph.text, weight)


def _sections(paragraphs: Iterable[Paragraph]) -> Iterator[tuple[tuple[int, str], Paragraph]]:
    """Each paragraph with the number and the name of its section."""
    number, name = 0, ""
    for paragraph in paragraphs:
        if paragraph.heading is not None:
            number, name = number + 1, paragraph.heading
        yield (number, name), paragraph


def _are_sources(name: str, section: list[Paragraph], weights: list[int]) -> bool:
    """Whether a section lists sources."""
    share, least = (_SOME, 1) if _NAMES.search(name.casefold()) else (_MOST, _CITATION)
    cited = sum(len(paragraph.text) for paragraph, weight in zip(section, weights, strict=True) if weight >= least)
    return cited >= share * sum(len(paragraph.text) for paragraph in section) and (least == 1 or len(section) > 1)


def _is_citation(text: str, weight: int) -> bool:
    """Whether a paragraph is a citation wherever it stands; more must speak for that where it is long."""
    return weight > _CITATION or (weight == _CITATION and count_tokens(text) < _LONG)


def _is_listed(text: str, weight: int) -> bool:
    """Whether a line of a section of sources is one of them: all but sentences, and those that are citations too."""
    return weight >= (2 if count_tokens(text) >= _LONG else 1) or not _is_sentence(text)


def _weight(text: str) -> int:
    """How much speaks for a citation; 0 for what is too long for one."""
    if len(text) > _MOST_CHARACTERS or not _MAY_HAVE_SIGN.search(text) or not _SIGN.search(text):
        return 0
    if count_tokens(text) > _MOST_WORDS:
        return 0
    if sum(map(len, _ADDRESS.findall(text))) > len(text) / 2:
        return _CITATION
    weight = sum(weight for pattern, weight in _MAIN if pattern.search(text))
    return weight + sum(bool(pattern.search(text)) for pattern in _MORE) if weight else 0


def _is_sentence(text: str) -> bool:
    return text.endswith(_SENTENCE_END) and count_tokens(text) >= _SENTENCE
