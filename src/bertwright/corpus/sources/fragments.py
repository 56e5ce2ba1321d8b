"""Detection of files that are almost a MediaWiki export, from their first bytes, and the remedy for each."""

from __future__ import annotations

import re
from pathlib import Path

from bertwright.corpus.errors import SourceError

_PARTS = {"page", "revision", "siteinfo", "namespaces", "contributor", "title", "text", "pages"}
"""Elements below the root of an export, with which a fragment of one may begin."""
# Linear time, here and below: no pattern matches past a place where it could begin again, so each is visited once.
_INSIDE = re.compile(rb"</?(?:page|revision|timestamp|contributor|siteinfo)>|<text [^<>]*?xml:space=")
_INDEX = re.compile(rb"(?:\d{3,}:\d+:[^\n]+\n){3}")
# Possessive, here and below: white space, or a file crafted to look like XML, must take only linear time.
_ROOT = re.compile(rb"(?:<\?(?:(?!\?>).)*+\?>|<!--(?:(?!-->).)*+-->|\s++)*+<([A-Za-z!][^\s>/]*)", re.DOTALL)
_SQL = re.compile(rb"\s*+(?:--[^\n]*+\n\s*+|/\*[^\n]*+\n\s*+)*+(?:DROP TABLE|CREATE TABLE|INSERT INTO) ")
_OTHER_ROOTS = {
    "feed": "it is a file of abstracts; use the dump named pages-articles",
    "api": "it is a response of the wiki's API; use Special:Export or the dump named pages-articles",
    "rss": "it is a news feed; use the dump named pages-articles",
}
_MARKS = tuple(map(re.compile, (rb"\[\[[^\[\]\n]++\]\]", rb"\{\{[^{}]++\}\}", rb"'''", rb"(?m)^==+[^=\n]+==+\s*$")))


def root_element(head: bytes) -> str:
    """The name of the first element, or of the declaration ("!DOCTYPE") before it; "" if there is neither."""
    root = _ROOT.match(head)
    return root.group(1).decode(errors="replace") if root else ""


def no_export(path: Path, root: str) -> SourceError:
    """The error for XML whose root element is `root`, not <mediawiki>; `root` is "" if it begins with no element."""
    if root in _PARTS:
        return _piece(path, f"it begins with <{root}>")
    if not root:
        return _piece(path, "it does not begin with an element")
    remedy = _OTHER_ROOTS.get(root, "use the dump named pages-articles")
    return SourceError(f"{path} is not a MediaWiki export: its root element is <{root}>, not <mediawiki>; {remedy}.")


def refuse_fragments(path: Path, head: bytes) -> None:
    """Raise `SourceError` if a file that would pass as plain text is a fragment of a dump or belongs to one."""
    if _INSIDE.search(head):
        raise _piece(path, "it has tags of an export, but no <mediawiki> before them")
    if _INDEX.match(head):
        raise SourceError(
            f"{path} is the index of a multistream dump, which holds only titles. Give the file next to it with a "
            "name that ends in multistream.xml.bz2."
        )
    if _SQL.match(head):
        raise SourceError(
            f"{path} is a table of a database (SQL), which holds no articles. Use the dump named pages-articles."
        )
    if sum(bool(mark.search(head)) for mark in _MARKS) >= 3:
        raise SourceError(
            f"{path} looks like wikitext, and wikitext is only read inside an export. Export the pages with "
            'Special:Export, or, to keep the markup in the text, set corpus.source.format = "text".'
        )


def no_pages(path: Path, *, whole: bool) -> SourceError:
    """The error for an export without a complete page; `whole` tells whether it has its closing tag."""
    if whole:
        return SourceError(
            f"{path} contains no complete page: the export ends after its head. Name pages when you export, or give "
            "the file of the dump that contains pages."
        )
    return SourceError(f"{path} contains no complete page. Download it again.")


def _piece(path: Path, reason: str) -> SourceError:
    return SourceError(
        f"{path} is not a MediaWiki export but may be a part of one: {reason}, not <mediawiki>. Put the head of the "
        "dump (from <mediawiki> to </siteinfo>) before its first whole <page> and </mediawiki> after its last; "
        '<mediawiki xml:lang="…"> alone is enough if the head is lost.'
    )
