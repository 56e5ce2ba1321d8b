"""Cut from a page what is never prose: comments, references, maths, galleries, code.

Everything between such a pair of tags is opaque to the rest of the cleaner, as it is to MediaWiki
itself, so these regions go first; on a typical article that is half of the page. What stays of one
(`<nowiki>`, TeX) is hidden from every later step as `literal` text until the page is finished.
"""

import html
import re
from typing import Literal

_DROPPED = (
    "ref|references|gallery|score|timeline|syntaxhighlight|source|pre|style|script"
    "|graph|mapframe|maplink|imagemap|hiero|inputbox|templatedata|includeonly|categorytree"
    "|indicator|rt|rp"
)

_MATHS = ("math", "chem", "ce")
_CUT = "|".join([_DROPPED, *_MATHS, "nowiki"])
_OPENING = re.compile(rf"<(?:!--|({_CUT})\b([^<>]*+)>)", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>]*+>")
_QUOTES = re.compile("''+")
# ASCII marks of literal text are written as characters of the last private-use plane, which no text uses.
_BASE = 0x100000
_MARKS = {ord(mark): chr(_BASE + ord(mark)) for mark in map(chr, range(33, 127)) if not mark.isalnum()}
_WRITTEN = re.compile(f"[{chr(_BASE + 33)}-{chr(_BASE + 126)}]")
_SPACE = re.compile(r"\s+")
_REFERENCE = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


def _either_case(word: str) -> str:
    return "".join(f"[{letter}{letter.upper()}]" for letter in word)


_CLOSING = {name: re.compile(rf"</{_either_case(name)}\s*>") for name in _CUT.split("|")}
_CLOSING["!--"] = re.compile("-->")


def cut_regions(wikitext: str, maths: Literal["drop", "tex"]) -> str:
    """The page without its opaque regions; `<nowiki>` text stays as `literal`, and so does TeX if `maths` says so.

    An opening tag whose closing tag never comes goes alone and its content stays, except a comment,
    which MediaWiki too lets run to the end of the page. Linear: each closing tag is searched for
    at most once beyond the regions it closes.
    """
    pieces = []
    position = 0
    # A hundred thousand `<ref>` without an end must not each search the rest of the page.
    never_closed = set()
    while opening := _OPENING.search(wikitext, position):
        pieces.append(wikitext[position : opening.start()])
        position = opening.end()
        name = opening[1].lower() if opening[1] else "!--"
        if name in never_closed or (opening[2] or "").endswith("/"):
            continue
        closing = _CLOSING[name].search(wikitext, position)
        if closing is None:
            never_closed.add(name)
            if name == "!--":
                return "".join(pieces)
            continue
        content = wikitext[position : closing.start()]
        if name == "nowiki":
            pieces.append(literal(_without_slips(content)))
        elif maths == "tex" and name in _MATHS:
            # TeX is full of braces, pipes and quotes, which later steps would read as markup.
            pieces.append(literal(content.strip()))
        position = closing.end()
    pieces.append(wikitext[position:])
    return "".join(pieces)


def _without_slips(text: str) -> str:
    """`<nowiki>` text without quote marks and tags that the visual editor escaped because they were typed into it."""
    if 'id="mw' in text:
        text = _TAG.sub("", text)
    return _QUOTES.sub("", text)


def literal(text: str) -> str:
    """`text` on one line, character references decoded, hidden from every later step until `shown`."""
    return _SPACE.sub(" ", decoded(text)).translate(_MARKS)


def shown(text: str) -> str:
    """`text` with its literal parts as they read."""
    return text if text.isascii() else _WRITTEN.sub(lambda mark: chr(ord(mark[0]) - _BASE), text)


def decoded(text: str) -> str:
    """`text` with HTML's character references as characters; a line feed among them is a space."""
    return _REFERENCE.sub(lambda reference: html.unescape(reference[0]).replace("\n", " "), text)
