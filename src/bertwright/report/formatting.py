"""Human-readable numbers, and the elements shared by all sections."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bertwright.core.markup import Content, Element, element

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


def large(value: float) -> str:
    """A count in at most four characters and a unit: 12,345,678 as 12.3 M."""
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        # Rounded first, otherwise 999,999 would be 1e+03 k.
        if (rounded := float(f"{value / size:.3g}")) >= 1:
            return f"{rounded:.3g} {unit}" if rounded < 1000 else f"{value / size:,.0f} {unit}"
    return f"{value / 1e3:.3g} k" if round(value) >= 10_000 else f"{value:,.0f}"


def operations(tera: float) -> str:
    """Tera-operations (10^12) in the unit that keeps the number small: 45,600 as 45.6 PFLOP."""
    units = ((1e9, "ZFLOP"), (1e6, "EFLOP"), (1e3, "PFLOP"), (1.0, "TFLOP"), (1e-3, "GFLOP"))
    size, unit = next(((size, unit) for size, unit in units if tera >= size), (1e-6, "MFLOP"))
    return f"{tera / size:,.3g} {unit}"


def duration(seconds: float) -> str:
    """Seconds as 8.2 s, 3 min 20 s, or 5 h 12 min."""
    # Rounded first, otherwise 59.97 s would be 60.0 s, and 119.7 s would be 1 min 60 s.
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60:,} h {minutes % 60} min"


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


def bar(share: float) -> Element:
    """A bar that fills `share` (0 to 1) of its cell."""
    return element("span", class_="bar", style=f"--share:{min(max(share, 0), 1) * 100:.1f}%")
