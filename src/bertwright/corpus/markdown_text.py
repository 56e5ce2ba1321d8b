"""Plain paragraphs from Markdown as converters of wikis write it: FineWiki, GoodWiki.

Headings are attached to the paragraphs that follow them, as in wikitext; tables, code, images and formulas on lines of
their own are left out. Markup inside a line is removed only where it is unmistakable: a lone "*" or "_" is text.
"""

from __future__ import annotations

import re
from typing import Literal

from bertwright.corpus.sources.format import Paragraph

_FENCE = re.compile(r"\s*(```|~~~)")
_HEADING = re.compile(r"\s{0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
_ITEM = re.compile(r"\s*(?:[-*+•]|(\d{1,4})[.)])[ \t]+")
_QUOTE = re.compile(r"\s{0,3}(?:>[ \t]?)+")
_RULE = re.compile(r"\s*(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|={3,})")
_ROW = re.compile(r"\|.*\||[|:\- ]*--[|:\- ]*")
_IMAGE = re.compile(r"!\[[^\]\n]*\]\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)")
_LINK = re.compile(r"(?<!\\)\[([^\[\]\n]*)\]\((?:<[^<>\n]*>|[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?:\s+\"[^\"\n]*\")?\)")
_STRONG = re.compile(r"(?<![\\*])(\*\*\*|\*\*)(?=\S)([^*\n]+)(?<=\S)\1|(?<![\\\w])__(?=\S)([^_\n]+)(?<=\S)__(?!\w)")
_EMPHASIS = re.compile(r"(?<![\\\w*])([*_])(?=[^\s*_])([^*_\n]+)(?<=\S)\1(?![\w*])()")
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|<>~$&])")
# A formula with a command, which no amount of money has: "$\alpha$", "$$x^2$$".
_FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\w$\\])\$(?=\S)([^$\n]*[\\^_{}=][^$\n]*)(?<=\S)\$(?!\d)")
_DISPLAYED = re.compile(r"\s*\$\$")


def markdown_paragraphs(text: str, title: str = "", maths: Literal["drop", "tex"] = "drop") -> list[Paragraph]:
    """The paragraphs and list items, in order; a first heading that repeats the title opens no section."""
    found, heading = list[Paragraph](), None
    fence, formula, number = "", False, 0
    for line in text.splitlines():
        if mark := _FENCE.match(line):
            fence = "" if fence == mark[1] else fence or mark[1]
            continue
        if _DISPLAYED.match(line) and line.count("$$") == 1:
            formula = not formula
            continue
        if fence or formula or not line.strip() or _RULE.fullmatch(line) or _ROW.fullmatch(line.strip()):
            continue
        if match := _HEADING.fullmatch(line):
            name = _inline(match[1], maths)
            heading = None if name == title and not found else name
            continue
        line = _QUOTE.sub("", line)
        item = _ITEM.match(line)
        # "12. század" begins a sentence, unless the items before it were counted up to 11.
        number = int(item[1]) if item and item[1] and int(item[1]) in (1, number + 1) else 0
        if item and (number or not item[1]):
            line = line[item.end() :]
        line = _inline(line, maths)
        if any(map(str.isalnum, line)):
            found.append(Paragraph(line, heading))
            heading = None
    return found


def _inline(text: str, maths: Literal["drop", "tex"]) -> str:
    if "$" in text:
        text = _FORMULA.sub(lambda match: (match[1] or match[2]).strip() if maths == "tex" else "", text)
    if "[" in text:
        text = _LINK.sub(r"\1", _IMAGE.sub("", text))
    if "*" in text or "_" in text:
        # Strong text may hold emphasis.
        for pattern in (_STRONG, _EMPHASIS, _STRONG):
            text = pattern.sub(lambda match: match[2] or match[3], text)
    text = _ESCAPE.sub(r"\1", text) if "\\" in text else text
    return " ".join(text.split())
