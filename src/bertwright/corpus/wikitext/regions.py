"""Removal of the regions of a page that are never prose: comments, references, maths, galleries, code; and tabs.

Everything between such a pair of tags is opaque to the rest of the cleaner, as it is to MediaWiki
itself, so these regions are removed first; in a typical article they are half of the page. Content that
is kept (`<nowiki>`, TeX) is hidden from all later steps as `literal` text until the page is finished.
"""

import html
import re
from functools import cache
from html.entities import html5
from typing import Literal

_DROPPED = (
    "ref|references|gallery|score|timeline|syntaxhighlight|source|pre|style|script"
    "|graph|mapframe|maplink|imagemap|hiero|inputbox|templatedata|includeonly|categorytree"
    "|indicator|dynamicpagelist|rt|rp"
)

# Fandom's own: videos, polls, lists of pages, columns of the main page, boxes defined in XML.
_WIDGETS = (
    "ac_metadata|activityfeed|bloglist|chat|choose|dpl|forum|goodreads|imagelink|infobox|jwplayer|listpages"
    "|mainpage-endcolumn|mainpage-leftcolumn-start|mainpage-rightcolumn-start|myactivity|nicovideo|playlist|poll"
    "|polldaddy|pollsnack|randomimage|rss|soundcloud|spotify|staff|tabview|top_users|twitter|verbatim|videogallery"
    "|vimeo|vk|weibo|widget|youtube"
)

_MATHS = ("math", "chem", "ce")
_CODE = ("syntaxhighlight", "source")
# Code inside a sentence, which only these attributes distinguish from a block.
_WITHIN_LINE = re.compile(r"\s(?:inline\b|enclose\s*=\s*[\"']?none\b)", re.IGNORECASE)
_CUT = "|".join([_DROPPED, *_MATHS, "nowiki"])
_OPENING = re.compile(rf"<(?:!--|({_CUT})\b([^<>]*+)>)", re.IGNORECASE)
# These only matter where another page includes this one.
_TRANSCLUSION = re.compile(r"</?(?:onlyinclude|noinclude)\s*+/?>", re.IGNORECASE)
_REST_OF_LINE = re.compile(r"[ \t]*+\n")
_TAG = re.compile(r"</?[A-Za-z][^<>]*+>")
_QUOTES = re.compile("''+")
# ASCII punctuation of literal text is encoded as characters of the last private-use plane, which no text uses.
_BASE = 0x100000
_MARKS = {ord(mark): chr(_BASE + ord(mark)) for mark in map(chr, range(33, 127)) if not mark.isalnum()}
_WRITTEN = re.compile(f"[{chr(_BASE + 33)}-{chr(_BASE + 126)}]")
# An empty `<nowiki/>` keeps quote marks apart. `polish` removes this invisible character.
_SEPARATOR = "\u00ad"
_SPACE = re.compile(r"\s+")
_TABS = re.compile(r"<tabber\b[^<>]*+>(.*?)</tabber\s*+>", re.DOTALL | re.I)
_TABS_END = re.compile(r"</tabber\s*+>", re.I)
_TAB = re.compile(r"\s*([^=\n{}|]{1,80}?)\s*=(.*)", re.DOTALL)
_REFERENCE = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


def _either_case(word: str) -> str:
    return "".join(f"[{letter}{letter.upper()}]" for letter in word)


_CLOSING = {name: re.compile(rf"</{_either_case(name)}\s*>") for name in _CUT.split("|")}
_CLOSING["!--"] = re.compile("-->")


@cache
def _widgets() -> tuple[re.Pattern[str], dict[str, re.Pattern[str]]]:
    """The openings of regions of a wiki of Fandom, and the closings by name."""
    closing = {name: re.compile(rf"</{_either_case(name)}\s*>") for name in _WIDGETS.split("|")}
    return re.compile(rf"<(?:!--|({_CUT}|{_WIDGETS})\b([^<>]*+)>)", re.IGNORECASE), _CLOSING | closing


def cut_regions(wikitext: str, maths: Literal["drop", "tex"], project: str = "") -> str:
    """The page without its opaque regions; `<nowiki>` text and code inside a sentence are kept as `literal`, and so
    is TeX if `maths` is "tex".

    An opening tag without a closing tag is removed and its content kept, except for a comment, which extends to the
    end of the page as in MediaWiki. A line with nothing but comments is removed entirely. Runs in linear time: an
    unsuccessful search for a closing tag happens at most once per tag name.
    """
    pieces = []
    position = 0
    opening_tags, closing_tags = _widgets() if project == "fandom" else (_OPENING, _CLOSING)
    # A hundred thousand unclosed `<ref>` tags must not each search the rest of the page.
    never_closed = set()
    line_begins = True
    while opening := opening_tags.search(wikitext, position):
        pieces.append(wikitext[position : opening.start()])
        position = opening.end()
        name = opening[1].lower() if opening[1] else "!--"
        line_begins = name == "!--" and _begins_line(pieces[-1], line_begins)
        if name in never_closed or (opening[2] or "").endswith("/"):
            if name == "nowiki" and pieces[-1].endswith("'"):
                pieces.append(_SEPARATOR)
            continue
        closing = closing_tags[name].search(wikitext, position)
        if closing is None:
            never_closed.add(name)
            if name == "!--":
                break
            continue
        content = wikitext[position : closing.start()]
        if name == "nowiki":
            pieces.append(hide_literal(_without_slips(content)))
        elif (maths == "tex" and name in _MATHS) or (name in _CODE and _WITHIN_LINE.search(opening[2])):
            # Both are full of braces, pipes and quotes, which later steps would interpret as markup.
            pieces.append(hide_literal(content.strip()))
        position = closing.end()
        if line_begins and (rest := _REST_OF_LINE.match(wikitext, position)):
            position = rest.end()
    else:
        pieces.append(wikitext[position:])
    return _TRANSCLUSION.sub("", "".join(pieces))


def _begins_line(text: str, before: bool) -> bool:
    """Whether the next character is the first one of a line, spaces aside; `before`: the first of `text` would be."""
    text = text.rstrip(" \t")
    return text.endswith("\n") or (before and not text)


def _without_slips(text: str) -> str:
    """`<nowiki>` text without the quote marks and tags that the visual editor escaped because users typed them."""
    if 'id="mw' in text:
        text = _TAG.sub("", text)
    return _QUOTES.sub("", text)


def hide_literal(text: str) -> str:
    """`text` on one line with character references decoded, hidden from every later step until `restore_literals`."""
    return _SPACE.sub(" ", decode_references(text)).translate(_MARKS)


def restore_literals(text: str) -> str:
    """`text` with its literal parts restored to ordinary characters."""
    return text if text.isascii() else _WRITTEN.sub(lambda mark: chr(ord(mark[0]) - _BASE), text)


def decode_references(text: str) -> str:
    """`text` with HTML character references decoded; a decoded line feed becomes a space.

    A name that HTML does not have is text, even if another begins it: "&notanentity;" is not "¬anentity;".
    """
    return _REFERENCE.sub(_decoded, text)


def _decoded(reference: re.Match[str]) -> str:
    written = reference[0]
    if written[1] != "#":
        return html5.get(written[1:], written).replace("\n", " ")
    return html.unescape(written).replace("\n", " ")


def without_tabs(wikitext: str) -> str:
    """The page with each tab of the extension Tabber, which Fandom and many other wikis have, as a section of its own
    under its name: `<tabber>One=text|-|Two=text</tabber>`."""
    # A search for a closing tag after the last one, at every opening tag, would take quadratic time.
    stop = max((tag.end() for tag in _TABS_END.finditer(wikitext)), default=0)
    return (
        _TABS.sub(lambda tabs: "".join(map(_section_of_tab, tabs[1].split("|-|"))), wikitext[:stop]) + wikitext[stop:]
    )


def _section_of_tab(tab: str) -> str:
    named = _TAB.match(tab)
    return f"\n==== {named[1]} ====\n{named[2]}\n" if named else f"\n{tab}\n"
