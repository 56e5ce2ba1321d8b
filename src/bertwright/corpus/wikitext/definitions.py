"""Templates that a dump itself defines as one line of plain text with parameters, and their bounded expansion.

MediaWiki's template language is a programming language; only a harmless subset is supported here: a body on one line
with words, links, inline tags, parameters and calls of such templates. Bodies with parser functions, modules, tables or
blocks are excluded, and so are notes to the wiki's authors, which link to other namespaces or are superscript.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bertwright.core.task_records import read_done
from bertwright.corpus.wikitext.links import link_text, redirect_target
from bertwright.corpus.wikitext.site import CATEGORY, FILE, TEMPLATE, Site
from bertwright.corpus.wikitext.templates import arguments, template_key

LONGEST = 2048
"""The longest body kept, in characters."""
# Limits are needed: ten calls in each body, eight levels deep, would be a hundred million bodies.
_MOST = 2**16
_DEEPEST = 8

_COMMENT = re.compile(r"<!--(?:.*?-->|.*)", re.DOTALL)
_NOINCLUDE = re.compile(r"<noinclude\s*+>(?:.*?</noinclude\s*+>|.*)|<noinclude\s*+/>", re.DOTALL | re.I)
_ONLYINCLUDE = re.compile(r"<onlyinclude\s*+>(.*?)(?:</onlyinclude\s*+>|\Z)", re.DOTALL | re.I)
_INVISIBLE = re.compile(r"</?includeonly\s*+/?>|<nowiki\s*+/>", re.I)
_LINK = re.compile(r"\[\[([^\[\]]*+)\]\]")
_TAG = re.compile(r"</?([A-Za-z]++)[^<>]*+>")
_INLINE = re.compile("span|small|big|su[bp]|i|b|u|em|strong|abbr|font|tt|code", re.I)
# Parser functions, magic words, transclusion of pages, names built at run time, tables and blocks.
_NOT_PLAIN = re.compile(r"\{\{[^{}|]*[:#]|\{\{\{\{|\{\||\n|^[*#:;=|!-]|^<sup\b.*</sup>$", re.I)
_NO_WORDS = re.compile(
    r"<ref\b|\{\{#tag:ref\b|<sup\b[^<>]*+>(?:<[^<>]*+>|'')*+(?:&#91;|\[)|\{\||<(?:table|div)\b", re.I
)
_PARAMETER = re.compile(r"\{\{\{([^{}|]*)(?:\|([^{}]*))?\}\}\}")


def plain_definition(title: str, wikitext: str, site: Site) -> tuple[str, str] | None:
    """The key and body of the template on page `title` ("Template:X"); None if it is not plain text.

    The body of a redirect is "#" and the key of its target. The body of a footnote, a note to the wiki's authors or a
    block is "", as it has no words for a sentence.
    """
    key = _page(title.partition(":")[2])
    target = redirect_target(wikitext, site)
    if target is not None:
        prefix, colon, rest = target.partition(":")
        return (key, "#" + _page(rest)) if colon and site.namespace(prefix) == TEMPLATE else None
    body = _body(wikitext)
    if _NO_WORDS.match(body):
        return key, ""
    return (key, body) if body and _is_plain(body, site) else None


class NotPlainError(Exception):
    """A call within a body cannot be expanded, so neither can the body."""


@dataclass(frozen=True)
class Definitions:
    """Bodies of templates by key, as returned by `plain_definition`."""

    bodies: Mapping[str, str]

    def target(self, name: str) -> str:
        """The template that `name` redirects to, else `name`."""
        body = self.bodies.get(_page(name), "")
        return body[1:] if body.startswith("#") else name


@lru_cache(maxsize=1)
def read_definitions(path: Path) -> Definitions:
    """Read the definitions from a JSON object of bodies by key; cached while a process works on one source."""
    return Definitions(read_done(path))


class Expander:
    """Expands the template calls of one page, to a depth of at most 8 calls and at most 64 Ki characters per page."""

    def __init__(self, definitions: Definitions) -> None:
        self.target = definitions.target
        self.depth = 0
        self._bodies = definitions.bodies
        self._left = _MOST

    def defines(self, name: str) -> bool:
        """Whether the dump has a body for the template."""
        return _page(name) in self._bodies

    def text(self, call: str, resolve: Callable[[str], str]) -> str | None:
        """The text of a call, given the text between its braces; None if it cannot be expanded.

        `resolve` converts the links and calls of the body to text. Within a body (`depth` > 0), an inner call that
        cannot be expanded raises `NotPlainError`.
        """
        name, *values = call.split("|")
        body = self._bodies.get(_page(name))
        try:
            if body is None or body.startswith("#") or self.depth == _DEEPEST:
                raise NotPlainError
            body = _fill(body, arguments(values))
            # Plus one, so that an endless sequence of empty bodies is limited as well.
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


@lru_cache(maxsize=4096)
def _page(name: str) -> str:
    """The name of a template's page as MediaWiki compares names: {{uk}} and {{Uk}} are one page, {{UK}} is another."""
    title = " ".join(name.replace("_", " ").split())
    return template_key(title[:1]) + title[1:]


def _body(wikitext: str) -> str:
    """The part of the template's wikitext that a call includes."""
    text = _NOINCLUDE.sub("", _COMMENT.sub("", wikitext))
    if only := _ONLYINCLUDE.findall(text):
        text = "".join(only)
    return _INVISIBLE.sub("", text).strip()


def _is_plain(body: str, site: Site) -> bool:
    if len(body) > LONGEST or _NOT_PLAIN.search(body):
        return False
    # An unclosed construct would absorb the text after the call.
    if any(body.count(opening) != body.count(closing) for opening, closing in (("{", "}"), ("[[", "]]"))):
        return False
    if not all(_INLINE.fullmatch(tag) for tag in _TAG.findall(body)):
        return False
    for link in _LINK.findall(body):
        prefix, colon, _ = link.lstrip(":").partition(":")
        if colon and site.namespace(prefix) not in (None, 0, FILE, CATEGORY):
            return False
    return bool(_TAG.sub("", _LINK.sub(lambda link: link_text(link[1], site), body)).strip())


def _fill(body: str, given: Mapping[str, str]) -> str:
    """The body with its parameters replaced, innermost first; a missing one becomes its default, else nothing."""
    longest_value = max(map(len, given.values()), default=0)
    for _ in range(_DEEPEST):
        # Checked before the replacement: a long argument in many places would exhaust the memory.
        if len(body) + longest_value * body.count("{{{") > _MOST:
            raise NotPlainError
        filled = _PARAMETER.sub(lambda parameter: given.get(parameter[1].strip(), parameter[2] or ""), body)
        if filled == body:
            break
        body = filled
    return body
