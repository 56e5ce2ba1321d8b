"""Human-readable numbers, and the elements shared by all sections."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bertwright.page.markup import Content, Element, element

NAN = "NaN"
"""Shown for NaN, which is null in JSON."""


def percent(share: float | None) -> str:
    """0.1234 as 12.3 %, without a fraction for whole percentages, with a non-breaking space; None as NaN."""
    if share is None:
        return NAN
    digits = 0 if round(share * 100, 1) == round(share * 100) else 1
    return f"{share * 100:.{digits}f}\u00a0%"


def number(value: float) -> str:
    """A number with thousands separators; integers without a fraction, others with about four digits."""
    # JSON may have 1.0 for a setting written as 1.
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def operations(tera: float) -> str:
    """Tera-operations (10^12) in the unit that keeps the number small: 45,600 as 45.6 PFLOP."""
    units = ((1e9, "ZFLOP"), (1e6, "EFLOP"), (1e3, "PFLOP"), (1.0, "TFLOP"), (1e-3, "GFLOP"))
    size, unit = next(((size, unit) for size, unit in units if tera >= size), (1e-6, "MFLOP"))
    return f"{tera / size:,.3g} {unit}"


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
