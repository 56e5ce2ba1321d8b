"""Detection of references: paragraphs that have the form of citations, and sections that consist of them.

A citation is recognised in any language by its parts: book numbers and identifiers, web addresses, a year in brackets
or at the end, a place with publisher and year, pages, initials. A single one of these is common in prose, so they are
weighted. In a section of sources (one whose name says so, or which consists mostly of citations) a lower weight is
enough, and lines that are not sentences count as references too. A paragraph of prose is kept wherever it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import compress, pairwise, repeat

from bertwright.corpus.sources.format import Paragraph
from bertwright.corpus.words import count_tokens

_YEAR = r"(?:1[4-9]|20)\d\d[a-z]?"
# Tests that most paragraphs fail come first, by substring or by patterns that begin with a single character, which are
# three times as fast.
_ADDRESS_SIGN, _MAY_HAVE_SIGN = re.compile(r"https?:|www\."), re.compile("[0-9/]")
_SIGN = re.compile(r"[0-9](?:(?<=1)[4-9][0-9]{2}|(?<=2)0[0-9]{2}|(?<=9)7[89]|-[0-9]|(?<=1)0\.[0-9]{4}|[0-9]{7})")
"""Every citation has one of these (a year, the number of a book or an article) or a web address."""
_NUMBER_NAME = re.compile(r"[IODPJLX](?:S[BS]N|CLC|OI|MID|STOR|CCN|iv)")
_NUMBER = re.compile(
    r"\b(?:ISBN|ISSN|OCLC|DOI|doi|PMID|JSTOR|LCCN|arXiv)\b|\b97[89][- ]?\d[\d -]{7,}\d\b|\b10\.\d{4,9}/\S"
)
_BOOK = re.compile(r"\b\d{1,5}-\d{2,7}-\d{1,7}-[\dXx]\b")
_LINK = re.compile(r"https?://|\bwww\.")
_YEAR_AFTER_COMMA = re.compile(rf",\s?{_YEAR}")
_PUBLISHED = re.compile(rf"[:—–]\s?[^\s.:,][^:,]{{0,60}},\s?{_YEAR}(?!\d)")  # Oxford: University Press, 1999
_YEAR_IN_BRACKETS = re.compile(rf"[(（\[]{_YEAR}[)）\]]")
_YEAR_AT_END = re.compile(rf"(?<!\d){_YEAR}\W{{0,3}}$")
_LONGEST_END = 9
"""Most characters of a year at the end, with what may follow it."""
_LETTER, _CAPITAL = r"[^\W\d_]", r"[^\W\d_a-z]"
_AFTER_SHORT_WORD = "|".join(rf"(?<=\b{_LETTER * letters}\.)" for letters in (1, 2, 3, 4))
_MORE = (
    (  # pages 12–34, 519 s.; vol. 3; № 3; the sign for page
        re.compile(
            rf"\d(?<!\d\d)(?:\d{{0,2}}\s?[-–—]\s?\d{{1,3}}(?!\d)|(?<!\w\d)\d{{1,3}}\s{_LETTER}{{1,2}}\.)",
        ),
        re.compile(rf"\.(?:{_AFTER_SHORT_WORD})\s?\d{{1,3}}(?!\d)"),
        re.compile(r"№\s?\d{1,3}(?!\d)"),
        re.compile("[頁页]"),
    ),
    (  # J. R. Smith; Smith, J.
        re.compile(rf"\.(?<={_CAPITAL}\.)(?<!\w{_CAPITAL}\.)\s?(?:{_CAPITAL}\.|{_LETTER}{{3,}})"),
        re.compile(rf",(?<={_LETTER * 3},)\s{_LETTER}\."),
    ),
)
"""Further signs: each group adds to the weight of a citation that already has a main sign."""
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+")
_MOST_CHARACTERS, _MOST_WORDS = 900, 60
"""Longer paragraphs are not a single citation."""
_CITATION = 3
"""Weight from which a paragraph is a citation anywhere, 4 for a long one; in a section of sources 1, and 2."""
_LONG = 20
"""Words from which a paragraph counts as long."""
_MOST, _SOME = 0.5, 0.3
"""`_MOST`: share of a section's characters in citations from which it is a section of sources, whatever its name.
`_SOME`: the share in paragraphs with any weight that every section of sources needs, even one whose name says so,
because a section about literature may have the same name."""
_SENTENCE_END = (".", "!", "?", "。", "！", "？", "।", "։", "؟", "۔", "။", "។", "…")
_SENTENCE = 8
"""Fewest words of a paragraph that counts as a sentence in a section of sources."""
_NAMES = re.compile(
    # Latin letters
    "referen|référen|referên|referèn|^rujukan|^sumber$|^hivatkozás|riferiment|referin|bibliogra|^literatur|^sekundärlit|^litterat|^literat[ūú]r|^literatuur|^sources|quellen|einzelnachw"
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
"""Names of sections of sources."""


def detect_references(paragraphs: list[Paragraph]) -> Iterator[bool]:
    """Yield for each paragraph of an article, in order, whether it is a reference."""
    for section in _sections(paragraphs):
        weights = [_weight(paragraph.text) for paragraph in section]
        if not any(weights):
            yield from repeat(False, len(section))
            continue
        is_reference = _is_listed if _are_sources(section, weights) else _is_citation
        for paragraph, weight in zip(section, weights, strict=True):
            yield is_reference(paragraph.text, weight)


def _sections(paragraphs: list[Paragraph]) -> Iterator[list[Paragraph]]:
    """The paragraphs of each section; the first one has the section's heading."""
    starts = [number for number, paragraph in enumerate(paragraphs) if number and paragraph.heading is not None]
    return (paragraphs[start:stop] for start, stop in pairwise([0, *starts, len(paragraphs)]))


def _are_sources(section: list[Paragraph], weights: list[int]) -> bool:
    """Whether a section is a list of sources."""
    sizes = [len(paragraph.text) for paragraph in section]
    signed, cited = (sum(compress(sizes, (weight >= least for weight in weights))) for least in (1, _CITATION))
    if signed < _SOME * sum(sizes):  # whatever its name
        return False
    return bool(_NAMES.search((section[0].heading or "").casefold())) or (
        cited >= _MOST * sum(sizes) and len(section) > 1
    )


def _is_citation(text: str, weight: int) -> bool:
    """Whether a paragraph is a citation in any section; a long one needs a higher weight."""
    return weight > _CITATION or (weight == _CITATION and count_tokens(text) < _LONG)


def _is_listed(text: str, weight: int) -> bool:
    """Whether a paragraph of a section of sources is a reference: all except sentences without enough weight."""
    return weight >= (2 if count_tokens(text) >= _LONG else 1) or not _is_sentence(text)


def _weight(text: str) -> int:
    """The weight of the evidence that a text is a citation; 0 for a text too long to be one.

    Counting stops once the weight exceeds `_CITATION`.
    """
    if len(text) > _MOST_CHARACTERS:
        return 0
    if not _SIGN.search(text) and not _has_sign_of_address(text):
        return 0
    if count_tokens(text) > _MOST_WORDS:
        return 0
    if _may_have_address(text) and sum(map(len, _ADDRESS.findall(text))) > len(text) / 2:
        return _CITATION
    weight = _main_weight(text)
    if 0 < weight <= _CITATION:
        weight += sum(any(pattern.search(text) for pattern in patterns) for patterns in _MORE)
    return weight


def _may_have_address(text: str) -> bool:
    return "http" in text or "www." in text


def _has_sign_of_address(text: str) -> bool:
    return _may_have_address(text) and bool(_ADDRESS_SIGN.search(text) and _MAY_HAVE_SIGN.search(text))


def _main_weight(text: str) -> int:
    """The total weight of the main signs."""
    weight = 0
    if ("97" in text or "10." in text or "doi" in text or _NUMBER_NAME.search(text)) and _NUMBER.search(text):
        weight += 3
    if text.count("-") > 2 and _BOOK.search(text):
        weight += 3
    if _may_have_address(text) and _LINK.search(text):
        weight += 2
    if _YEAR_AFTER_COMMA.search(text) and _PUBLISHED.search(text):
        weight += 2
    if _YEAR_IN_BRACKETS.search(text) or _YEAR_AT_END.search(text, max(0, len(text) - _LONGEST_END)):
        weight += 1
    return weight


def _is_sentence(text: str) -> bool:
    return text.endswith(_SENTENCE_END) and count_tokens(text) >= _SENTENCE
