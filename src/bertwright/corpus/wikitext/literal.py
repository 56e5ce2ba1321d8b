"""Text that no later step may read as markup: what stands in `<nowiki>`, and TeX.

Until the page is finished its ASCII punctuation is written as private-use characters of the last plane,
which no text uses: 0x100000 plus the mark.
"""

import html
import re

_BASE = 0x100000
_MARKS = {ord(mark): chr(_BASE + ord(mark)) for mark in map(chr, range(33, 127)) if not mark.isalnum()}
_WRITTEN = re.compile(f"[{chr(_BASE + 33)}-{chr(_BASE + 126)}]")
_SPACE = re.compile(r"\s+")
_REFERENCE = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


def literal(text: str) -> str:
    """`text` on one line, character references decoded, hidden from every later step until `shown`."""
    return _SPACE.sub(" ", decoded(text)).translate(_MARKS)


def shown(text: str) -> str:
    """`text` with its literal parts as they read."""
    return text if text.isascii() else _WRITTEN.sub(lambda mark: chr(ord(mark[0]) - _BASE), text)


def decoded(text: str) -> str:
    """`text` with HTML's character references as characters; a line feed among them is a space."""
    return _REFERENCE.sub(lambda found: html.unescape(found[0]).replace("\n", " "), text)
