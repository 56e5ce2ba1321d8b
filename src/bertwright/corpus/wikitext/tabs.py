"""Tabs of the extension Tabber, which Fandom and many other wikis have: `<tabber>One=text|-|Two=text</tabber>`."""

import re

_TABS = re.compile(r"<tabber\b[^<>]*+>(.*?)</tabber\s*+>", re.DOTALL | re.I)
_END = re.compile(r"</tabber\s*+>", re.I)
_TAB = re.compile(r"\s*([^=\n{}|]{1,80}?)\s*=(.*)", re.DOTALL)


def without_tabs(wikitext: str) -> str:
    """The page with each tab as a section of its own, under its name."""
    # A search for a closing tag after the last one, at every opening tag, would take quadratic time.
    stop = max((tag.end() for tag in _END.finditer(wikitext)), default=0)
    return _TABS.sub(lambda tabs: "".join(map(_section, tabs[1].split("|-|"))), wikitext[:stop]) + wikitext[stop:]


def _section(tab: str) -> str:
    named = _TAB.match(tab)
    return f"\n==== {named[1]} ====\n{named[2]}\n" if named else f"\n{tab}\n"
