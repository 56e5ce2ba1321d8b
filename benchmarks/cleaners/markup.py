"""What a page's markup holds, told by mwparserfromhell's parse tree and not by the cleaner that is judged.

A program for a Python that has mwparserfromhell: the first line of standard input is the JSON object
`{"caption": [names], "category": [names]}`, the namespaces whose links show no text, every further line is a page
`{"id", "text"}`. For each page it prints one JSON line:

    text        strip_code()'s plain text
    prose       the same without what strip_code() prints for captions (links to files), categories (and links to other
                languages' pages, which show nothing either), tables, references (`<ref>`) and headings, and without
                the tables and references that it prints raw because the parser did not understand them
    literal     what looks like markup or a namespace and is text for the reader: `<nowiki>` and the labels of links
    headings    the page's headings
    lines       the lines of the body in which a template is called beside text; a line is a list whose items are
                text (a string), a template call ([name, first unnamed argument, entire call]) and what breaks the
                text (null), in order
"""

import json
import re
import sys
from collections.abc import Iterator

import mwparserfromhell
from mwparserfromhell.nodes import (
    Argument,
    Comment,
    ExternalLink,
    Heading,
    HTMLEntity,
    Node,
    Tag,
    Template,
    Text,
    Wikilink,
)
from mwparserfromhell.wikicode import Wikicode

_LANGUAGE_LINK = re.compile(r"(?:[a-z]{2,3}|simple)(?:-[a-z]+)*:\S")
_UNREAD = {"gallery", "imagemap", "timeline", "math", "chem", "ce", "score", "pre", "source", "syntaxhighlight"}
_BREAKS = {"br", "p", "div", "li", "dt", "dd", "ul", "ol", "dl", "blockquote", "center", "hr", "poem"}
_RAW = (
    r"^[ :*#]*\{\|.*?(?:^[ ]*\|\}|\Z)|<table\b.*?</table\s*>|<ref\b[^<>]*?/>|<ref\b.*?</ref\s*>"
    r"|\[\[(?:%s):[^\n]*?\]\]"
)
_STRIP = {"normalize": True, "collapse": True, "keep_template_params": False}
Piece = str | list[str] | None
Hidden = dict[str, str]


def main() -> None:
    """Read pages from standard input and print what they hold."""
    names = json.loads(sys.stdin.readline())
    hidden = {name.lower(): kind for kind in ("caption", "category") for name in names[kind]}
    for line in sys.stdin:
        page = json.loads(line)
        print(json.dumps({"id": page["id"], **facts(page["text"], hidden)}))


def facts(wikitext: str, hidden: Hidden) -> dict[str, object]:
    """What is printed for a page, without its id; `hidden` the kind of link by lower-case namespace."""
    code = mwparserfromhell.parse(wikitext)
    raw = re.compile(_RAW % "|".join(map(re.escape, hidden)), re.MULTILINE | re.DOTALL | re.IGNORECASE)
    return {
        "text": code.strip_code(),
        "prose": raw.sub(" ", "".join(prose(code, hidden))),
        "literal": "\n".join(literal(code, hidden)),
        "headings": [heading.title.strip_code().strip() for heading in code.filter_headings()],
        "lines": [line for line in lines(code, hidden) if any(isinstance(piece, list) for piece in line)],
    }


def prose(code: Wikicode, hidden: Hidden) -> Iterator[str]:
    """What strip_code() prints, a space in place of each construct that is no prose."""
    for node in code.nodes:
        if _kind(node, hidden):
            yield " "
        elif isinstance(node, (Tag, Wikilink)) and node.__strip__(**_STRIP) and (inner := _shown(node)) is not None:
            yield from prose(inner, hidden)
        else:
            yield node.__strip__(**_STRIP) or ""


def literal(code: Wikicode, hidden: Hidden) -> Iterator[str]:
    """The texts of `<nowiki>` tags and the labels of links that are shown."""
    for tag in code.filter_tags(matches=lambda tag: str(tag.tag).lower() == "nowiki"):
        yield tag.contents.strip_code()
    for link in code.filter_wikilinks():
        if link.text is not None and ":" in link.text and not _kind(link, hidden):
            yield link.text.strip_code()


def _kind(node: Node, hidden: Hidden) -> str:
    if isinstance(node, Heading):
        return "heading"
    if isinstance(node, Tag):
        return {"table": "table", "ref": "reference"}.get(str(node.tag).strip().lower(), "")
    if isinstance(node, Wikilink):
        title = str(node.title).strip()
        if node.text is None:  # an unlabelled [[:Category:...]] points at the wiki's shelves
            title = title.lstrip(":")
        namespace, colon, _ = title.partition(":")
        if _LANGUAGE_LINK.match(title):
            return "category"
        return hidden.get(namespace.strip().lower(), "") if colon else ""
    return ""


def _shown(node: Node) -> Wikicode | None:
    """What strip_code() reads within the node."""
    if isinstance(node, Tag):
        return node.contents
    if isinstance(node, Wikilink):
        return node.title if node.text is None else node.text
    if isinstance(node, ExternalLink):
        return node.title
    return None


def lines(code: Wikicode, hidden: Hidden) -> Iterator[list[Piece]]:
    """The lines of the page, in pieces."""
    line: list[Piece] = []
    for piece in _pieces(code, hidden):
        if not isinstance(piece, str):
            line.append(piece)
            continue
        first, *rest = piece.split("\n")
        line.append(first)
        for text in rest:
            yield line
            line = [text]
    yield line


def _pieces(code: Wikicode, hidden: Hidden) -> Iterator[Piece]:
    for node in code.nodes:
        if isinstance(node, Text):
            yield str(node)
        elif isinstance(node, HTMLEntity):
            yield node.normalize() or ""
        elif isinstance(node, Template):
            yield [str(node.name).strip(), _first(node), str(node)]
        elif isinstance(node, Tag):
            yield from _pieces_of_tag(node, hidden)
        elif isinstance(node, Argument):
            yield None
        elif not isinstance(node, Comment):
            kind = _kind(node, hidden)
            inner = None if kind else _shown(node)
            if inner is not None:
                yield from _pieces(inner, hidden)
            elif kind == "heading":
                yield "\n\n"


def _first(call: Template) -> str:
    """The first unnamed argument that is not empty, as it is written."""
    values = (str(value.value).strip() for value in call.params if not value.showkey)
    return next(filter(None, values), "")


def _pieces_of_tag(node: Tag, hidden: Hidden) -> Iterator[Piece]:
    name = str(node.tag).strip().lower()
    if name == "table":
        yield "\n\n"
    elif name in _UNREAD:
        yield None
    elif name == "nowiki":
        yield str(node.contents)
    elif name != "ref" and node.wiki_markup is not None and name in {"li", "dt", "dd", "hr"}:
        yield str(node.wiki_markup)
    elif name != "ref":
        border = "\n" if name in _BREAKS else ""
        yield border
        if node.contents is not None:
            yield from _pieces(node.contents, hidden)
        yield border


if __name__ == "__main__":
    main()
