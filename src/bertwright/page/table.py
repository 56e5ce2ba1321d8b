"""The elements that all sections share: tables, lists of definitions, bars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bertwright.page.markup import Content, Element, element


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
