"""What of the markup is left in plain text, counted by the same patterns for every cleaner.

The columns are those of the published comparisons of extractors: each is a pattern of what no reader of the page sees.
Where prose may rightly hold the same characters (a function call's "()", a norm's bars), the pattern's comment says
how it is told apart.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

_MARKS = "".join(c for c in map(chr, range(0x300, 0x10000)) if unicodedata.category(c) in ("Mn", "Mc"))
WORD = re.compile(rf"[\w{_MARKS}\u200c\u200d]+")
"""A word or number; the vowel signs of Indic scripts and the joiners are part of it, which \\w alone would cut."""

# A file's options stand alone between bars, in the language of the wiki or in English; in prose "thumb" is a word.
_OPTIONS = (
    "thumb|thumbnail|frame|frameless|upright|left|right|center|міні|мініатюра|праворуч|ліворуч|центр|μικρογραφία|δεξιά"
    "|αριστερά|κέντρο|մինի|մինիատյուր|ձախից|աջից|կենտրոն|থাম্ব|ডান|বাম|ডানে|বামে|nhỏ|phải|trái|giữa|इवलेसे|उजवे|डावे"
)
_FLAGS = re.MULTILINE | re.IGNORECASE

PATTERNS: Mapping[str, re.Pattern[str]] = {
    "px/thumb": re.compile(
        rf"\b\d*x?\d+px\b|(?<=\|)[ ]*(?:{_OPTIONS})[ ]*(?=\||$)|^[ ]*(?:{_OPTIONS})[ ]*(?=\|)", _FLAGS
    ),
    # Lines that begin with a bar or "!" are rows and cells. Bars within a line may be maths, phonetics, an operator of
    # C or a danda, and attributes that do not open a line or cell may be an article's about HTML.
    "table": re.compile(
        r"\{\||\|\}|^[ ]*[|!]|(?:^|\|)[ ]*(?:style|class|align|valign|bgcolor|width|(?:col|row)span)[ ]*=",
        _FLAGS,
    ),
    # Two apostrophes after a number are seconds of arc or inches.
    "''": re.compile(r"(?<![\d′'])''+"),
    "== ==": re.compile(r"^[ ]*==.*==[ ]*$", _FLAGS),
    "list marks": re.compile(r"^[ ]*(?:[*:;]|#(?!\d))", _FLAGS),
    "formula_N": re.compile(r"\b(?:formula|codice)_\d+"),
    # f() is a function's call, and the brackets belong to it.
    "empty brackets": re.compile(r"(?<!\w)\([\s,;:]*\)|(?<!\w)\[[\s,;:]*\]"),
    # ".NET" and ".45" begin with their stop, and "..." is a word left out.
    "space, stop": re.compile(r"(?<=\S)[ \xa0](?:[,։،。]|\.(?![\w.]))"),
    "entities": re.compile(r"&(?:#\d+|#x[\da-f]+|[a-z][a-z\d]+);", _FLAGS),
    "{{ }}": re.compile(r"\{\{|\}\}"),
    "[[ ]]": re.compile(r"\[\[|\]\]"),
    "tags": re.compile(r"</?[a-z][a-z\d]*(?:[ ][^<>\n]*)?/?>", _FLAGS),
}
COLUMNS = ("File:/Category:", *PATTERNS, "heading lines")


def find(text: str, names: Iterable[str], headings: Iterable[str], literal: str) -> Iterator[tuple[str, int]]:
    """Every leftover in one page's text as its column and where it begins.

    `names` are the names of the file and category namespaces, `headings` the page's headings as plain text: a line
    that is a heading and no more, its closing stop aside, is a heading taken for prose. What the page shows its reader
    as it is, `literal`, may occur as often as it does there.
    """
    links = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))}):(?=\S)", re.IGNORECASE)
    for column, pattern in {"File:/Category:": links, **PATTERNS}.items():
        allowed = Counter(pattern.findall(literal)) if literal else Counter()
        for match in pattern.finditer(text):
            allowed[match[0]] -= 1
            if allowed[match[0]] < 0:
                yield column, match.start()
    titles = {heading.strip().rstrip(".") for heading in headings} - {""}
    position = 0
    for line in text.split("\n"):
        if line.strip().rstrip(".") in titles:
            yield "heading lines", position
        position += len(line) + 1
