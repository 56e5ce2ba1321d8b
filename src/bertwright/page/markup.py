"""Pages and model cards as trees of elements, with their tables, written as HTML or as Markdown.

A `str` in a tree is always text and is escaped here, once, for the format that is written. Markup is an `Element`, and
only `element` makes one, from names that mypy knows. So no text of a run, whoever wrote it, can become markup.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from typing import Literal, TypeAlias
from xml.etree.ElementTree import Element, tostring

__all__ = [
    "Content", "Element", "Tag", "address", "b", "bar", "code", "definitions", "div", "element", "html", "image",
    "markdown", "p", "plain_table", "small", "svg", "table",
]  # fmt: skip

Tag = Literal[
    "html", "head", "meta", "title", "body", "header", "nav", "main", "section", "div", "h1", "h2", "h3", "p", "a",
    "b", "i", "strong", "br", "code", "mark", "small", "span", "time", "pre", "blockquote", "ul", "ol", "li",
    "dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "details", "summary",
    "svg", "line", "text", "rect", "circle", "polyline",
]  # fmt: skip
"""The elements of our pages. None of them runs, loads or styles anything, whatever its text and attributes are."""
Content: TypeAlias = "str | Element | Iterable[Content]"
"""Text, an element, or several of these in a row."""
_ADDRESS = re.compile(r"https?://[\w.:/%~+,;=&@-]+")
_BESIDE = re.compile(r"#[\w-]+|[\w-]+(/[\w-]+)*/?")
"""A section of the page, or something in the folder of the page: it has no scheme, such as `javascript:`."""


def element(tag: Tag, *content: Content, **attributes: str) -> Element:
    """The element `tag` with its content; `aria_label` and `class_` are the attributes aria-label and class.

    Raises `ValueError` for a link that is neither a web address nor in the folder of the page.
    """
    link = attributes.get("href")
    if link is not None and not (_ADDRESS.fullmatch(link) or _BESIDE.fullmatch(link)):
        raise ValueError(f"{link!r} is not a link to a web address or to a file beside the page")
    made: Element = Element(tag, {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()})
    _append(made, content)
    return made


def _append(parent: Element, content: Iterable[Content]) -> None:
    for each in content:
        if isinstance(each, Element):
            # A copy, because the text after an element is kept in it, and it may be used in two places.
            parent.append(copy(each))
        elif not isinstance(each, str):
            _append(parent, each)
        elif len(parent):
            parent[-1].tail = (parent[-1].tail or "") + each
        else:
            parent.text = (parent.text or "") + each


b, code, small, p, div = (partial(element, tag) for tag in ("b", "code", "small", "p", "div"))


def address(text: str) -> Content:
    """A link, if the text is certainly a web address, because readers trust links; anything else as text."""
    return element("a", text, href=text) if _ADDRESS.fullmatch(text) else text


def definitions(rows: Iterable[tuple[str, str]]) -> Element:
    """Names and values as a two-column list."""
    return element("dl", [element("div", element("dt", name), element("dd", value)) for name, value in rows])


def table(head: Sequence[str], rows: Iterable[Sequence[Content]], style: str = "") -> Element:
    """A table that becomes a stack of cards on a phone."""
    body = (
        # On a phone the style sheet shows each cell's column head, taken from `data-head`, before the cell.
        element("tr", [element("td", cell, data_head=title) for title, cell in zip(head, row, strict=True)])
        for row in rows
    )
    top = element("tr", [element("th", title, scope="col") for title in head])
    return element("table", element("thead", top), element("tbody", body), class_=style)


def plain_table(rows: Iterable[Sequence[Content]], head: Sequence[str] = ("", "")) -> Element:
    """A table of a model card."""
    cells = [element("tr", [element("td", cell) for cell in row]) for row in rows]
    return element("table", element("tr", [element("th", title) for title in head]), cells)


def bar(share: float) -> Element:
    """A bar that fills `share` (0 to 1) of its cell."""
    return element("span", class_="bar", style=f"--share:{min(max(share, 0), 1) * 100:.1f}%")


def html(page: Element, style: str) -> str:
    """The element `html` as a complete document with a style sheet, which must be our own."""
    sheet = Element("style")
    sheet.text = style
    styled, head = copy(page), copy(page[0])
    head.append(sheet)
    styled[0] = head
    return f"<!DOCTYPE html>\n{tostring(styled, 'unicode', method='html')}\n"


def svg(picture: Element, style: str) -> str:
    """The element `svg` as a complete file with a style sheet, which must be our own."""
    sheet, styled = Element("style"), copy(picture)
    sheet.text = style
    styled.insert(0, sheet)
    return tostring(styled, "unicode")


def image(title: str, svg_file: str, width: int) -> str:
    """An SVG file as an image of HTML, `width` pixels wide: its styles cannot reach the page that shows it."""
    data = base64.b64encode(svg_file.encode()).decode()
    shown = Element("img", alt=title, width=str(width), src=f"data:image/svg+xml;base64,{data}")
    return tostring(shown, "unicode", method="html")


def markdown(blocks: Iterable[Content]) -> str:
    """Blocks as Markdown: headings, paragraphs, quotes, lists, tables and code."""
    return "\n\n".join(_block(block) for block in blocks)


def _block(block: Content) -> str:
    if not isinstance(block, Element):
        return _paragraph(element("p", block))
    if block.tag in ("h1", "h2", "h3"):
        return f"{'#' * int(block.tag[1])} {_line(block)}"
    if block.tag == "blockquote":
        return f"> {_line(block)}"
    if block.tag == "ul":
        return "\n".join(f"- {_paragraph(item)}" for item in block)
    if block.tag == "table":
        rows = [[_line(cell).replace("|", "\\|") for cell in row] for row in block.iter("tr")]
        rows.insert(1, ["---"] * len(rows[0]))
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)
    if block.tag == "pre":
        # Code of our own, whose texts are literals of one line: no line of it can end the block.
        return f"```{block.get('class', '')}\n{block.text}\n```"
    return _paragraph(block)


def _paragraph(block: Element) -> str:
    # At the beginning of a line these would make a list, a heading or a rule.
    return re.sub(r"^(\d*)([-+=.)#])", r"\1\\\2", _line(block))


def _line(block: Element) -> str:
    return re.sub(" +", " ", "".join(_inline(block))).strip()


def _inline(parent: Element) -> Iterator[str]:
    yield _escape(parent.text or "")
    for child in parent:
        if child.tag == "code":
            yield _span(child.text or "")
        elif child.tag == "a":
            yield child.text or ""  # Markdown makes a link of an address
        else:
            yield f"**{_line(child)}**" if child.tag == "b" else "".join(_inline(child))
        yield _escape(child.tail or "")


def _escape(text: str) -> str:
    written = re.sub(r"([\\`*_\[\]~])", r"\\\1", _printable(text))
    return written.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _span(text: str) -> str:
    """A code span, in which nothing is markup: a backslash before a character would be shown."""
    seen = _printable(text).strip()
    fence = "`" * (max(map(len, re.findall("`+", seen)), default=0) + 1)
    # A space on both sides is not shown; without it, a backtick of the text would be part of the fence.
    return f"{fence} {seen} {fence}" if "`" in seen else f"{fence}{seen}{fence}"


def _printable(text: str) -> str:
    """Text on one line without invisible characters, which can reverse its direction or hide a part of an address."""
    return "".join(character if character.isprintable() else " " for character in text)
