"""Templates that a dump itself defines as one line of plain text with parameters, and their bounded expansion.

MediaWiki's language of templates is a programming language; what is taken here is its harmless part: a body on one
line, made of words, links, inline tags, parameters and calls of such templates. Bodies with parser functions, modules,
tables or blocks are none, nor are notes to the wiki's authors: those link to its other namespaces or stand raised.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bertwright.core.done import read_done
from bertwright.corpus.wikitext.links import link_text, redirect_target
from bertwright.corpus.wikitext.site import CATEGORY, FILE, TEMPLATE, Site
from bertwright.corpus.wikitext.templates import arguments, template_key

LONGEST = 2048
"""The longest body kept, in characters."""
# Ten calls in each body, eight levels deep, would be a hundred million bodies.
_MOST = 2**16
_DEEPEST = 8

_COMMENT = re.compile(r"<!--(?:.*?-->|.*)", re.DOTALL)
_NOINCLUDE = re.compile(r"<noinclude\s*+>(?:.*?</noinclude\s*+>|.*)|<noinclude\s*+/>", re.DOTALL | re.I)
_ONLYINCLUDE = re.compile(r"<onlyinclude\s*+>(.*?)(?:</onlyinclude\s*+>|\Z)", re.DOTALL | re.I)
_INVISIBLE = re.compile(r"</?includeonly\s*+/?>|<nowiki\s*+/>", re.I)
_LINK = re.compile(r"\[\[([^\[\]]*+)\]\]")
_TAG = re.compile(r"</?([A-Za-z]++)[^<>]*+>")
_INLINE = re.compile("span|small|big|su[bp]|i|b|u|em|strong|abbr|font|tt|code", re.I)
# Parser functions, magic words, transclusion of pages, names made at run time, tables and blocks.
_NOT_PLAIN = re.compile(r"\{\{[^{}|]*[:#]|\{\{\{\{|\{\||\n|^[*#:;=|!-]|^<sup\b.*</sup>$", re.I)
_NO_WORDS = re.compile(
    r"<ref\b|\{\{#tag:ref\b|<sup\b[^<>]*+>(?:<[^<>]*+>|'')*+(?:&#91;|\[)|\{\||<(?:table|div)\b", re.I
)
_PARAMETER = re.compile(r"\{\{\{([^{}|]*)(?:\|([^{}]*))?\}\}\}")


def plain_definition(title: str, wikitext: str, site: Site) -> tuple[str, str] | None:
    """The key and body of the template on page `title` ("Template:X"); None where it is not plain text.

    The body of a redirect is "#" and the key of the template it leads to, that of a footnote, a note to the wiki's
    authors or a block "": it has no words for a sentence.
    """
    key = template_key(title.partition(":")[2])
    target = redirect_target(wikitext, site)
    if target is not None:
        prefix, colon, rest = target.partition(":")
        return (key, "#" + template_key(rest)) if colon and site.namespace(prefix) == TEMPLATE else None
    body = _body(wikitext)
    if _NO_WORDS.match(body):
        return key, ""
    return (key, body) if body and _is_plain(body, site) else None


class NotPlainError(Exception):
    """A call within a body cannot be written out, so neither can the body."""


@dataclass(frozen=True)
class Definitions:
    """Bodies of templates by key, as `plain_definition` gives them."""

    bodies: Mapping[str, str]

    def target(self, name: str) -> str:
        """The template that `name` redirects to, else `name`."""
        body = self.bodies.get(template_key(name), "")
        return body[1:] if body.startswith("#") else name


@lru_cache(maxsize=1)
def read_definitions(path: Path) -> Definitions:
    """The definitions in a JSON object of bodies by key; kept while a process works on one source."""
    return Definitions(read_done(path))


class Expander:
    """Writes out the calls on one page: no deeper than 8 calls, and 64 Ki characters on the whole page."""

    def __init__(self, definitions: Definitions) -> None:
        self.target = definitions.target
        self.depth = 0
        self._bodies = definitions.bodies
        self._left = _MOST

    def defines(self, name: str) -> bool:
        """Whether there is a body for the template."""
        return template_key(name) in self._bodies

    def text(self, call: str, resolve: Callable[[str], str]) -> str | None:
        """The text of a call, given what stands between its braces; None where it cannot be written out.

        `resolve` makes text of the body's links and calls; within a body (`depth` > 0) it is `NotPlainError` that
        says so of an inner call.
        """
        name, *values = call.split("|")
        body = self._bodies.get(template_key(name))
        try:
            if body is None or body.startswith("#") or self.depth == _DEEPEST:
                raise NotPlainError
            body = _filled(body, arguments(values))
            # One more, so that endless empty bodies come to an end as well.
            self._left -= len(body) + 1
            if self._left < 0:
                raise NotPlainError
            self.depth += 1
            try:
                return resolve(body)
            finally:
                self.depth -= 1
        except NotPlainError:
            if self.depth:
                raise
            return None


def _body(wikitext: str) -> str:
    """What a call of the template includes."""
    text = _NOINCLUDE.sub("", _COMMENT.sub("", wikitext))
    if only := _ONLYINCLUDE.findall(text):
        text = "".join(only)
    return _INVISIBLE.sub("", text).strip()


def _is_plain(body: str, site: Site) -> bool:
    if len(body) > LONGEST or _NOT_PLAIN.search(body):
        return False
    # What is left open would take in the text after the call.
    if any(body.count(opening) != body.count(closing) for opening, closing in (("{", "}"), ("[[", "]]"))):
        return False
    if not all(_INLINE.fullmatch(tag) for tag in _TAG.findall(body)):
        return False
    for link in _LINK.findall(body):
        prefix, colon, _ = link.lstrip(":").partition(":")
        if colon and site.namespace(prefix) not in (None, 0, FILE, CATEGORY):
            return False
    return bool(_TAG.sub("", _LINK.sub(lambda link: link_text(link[1], site), body)).strip())


def _filled(body: str, given: Mapping[str, str]) -> str:
    """The body with its parameters replaced, innermost first; one that is missing is its default, else nothing."""
    longest_value = max(map(len, given.values()), default=0)
    for _ in range(_DEEPEST):
        # Before it is written: a long argument in many places would fill the memory first.
        if len(body) + longest_value * body.count("{{{") > _MOST:
            raise NotPlainError
        filled = _PARAMETER.sub(lambda parameter: given.get(parameter[1].strip(), parameter[2] or ""), body)
        if filled == body:
            break
        body = filled
    return body
