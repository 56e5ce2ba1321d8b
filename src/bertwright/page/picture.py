"""Charts as pictures that need no page: SVG with its own colours and legend, for notebooks, slides and papers."""

from __future__ import annotations

from collections.abc import Sequence

from bertwright.page.chart import HEIGHT, WIDTH, Chart, Series, drawing
from bertwright.page.markup import Element, element, image, svg

_TITLE, _ROW = 28, 18
"""Heights of the title, and of a row of the legend, above a chart."""
STYLE = """
svg { background: #ffffff; font: 12px system-ui, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; fill: #5d6670; }
.title { font-size: 14px; font-weight: 600; fill: #1d2126; }
.label { fill: #1d2126; }
.grid { stroke: #dcdad2; }
.axis { stroke: #5d6670; }
.phase { stroke: #5d6670; stroke-dasharray: 2 3; }
.line { fill: none; stroke: #1f5fa8; stroke-width: 1.6; stroke-linejoin: round; }
.heldout { stroke: #c2570c; stroke-width: 2; }
.second { stroke: #2c7a4b; }
.baseline { stroke: #5d6670; stroke-dasharray: 7 5; }
.dot { fill: #c2570c; stroke: none; }
.dot.second { fill: #2c7a4b; }
"""
"""The colours of a page on paper: a picture does not know what it is shown on."""


class Pictures(dict[str, str]):
    """SVG pictures by title; a notebook shows them beside each other."""

    def _repr_html_(self) -> str:
        return "\n".join(image(title, picture, WIDTH) for title, picture in self.items())


def picture(chart: Chart) -> str:
    """The chart with its title and legend as the text of an SVG file."""
    shown = [series for series in chart.series if series.points]
    rows = _rows(shown)
    head = _TITLE + _ROW * len(rows)
    drawn = element(
        "svg",
        element("text", chart.title, class_="title", x="13", y=f"{20 - head}"),
        [_key(series, left, _ROW * (number - len(rows))) for number, row in enumerate(rows) for series, left in row],
        drawing(chart, shown),
        viewBox=f"0 {-head} {WIDTH} {HEIGHT + head}",
        xmlns="http://www.w3.org/2000/svg",
    )
    return svg(drawn, STYLE)


def _rows(shown: Sequence[Series]) -> list[list[tuple[Series, float]]]:
    """The rows of the legend: series, each with the place of its key from the left."""
    rows, left = list[list[tuple[Series, float]]](), float(WIDTH)
    for series in shown:
        # Nothing here measures text: a letter of 12 pixels is about 6.4 wide.
        wide = 24 + 6.4 * len(series.name) + 16
        if left + wide > WIDTH:
            rows.append([])
            left = 13.0
        rows[-1].append((series, left))
        left += wide
    return rows


def _key(series: Series, left: float, top: int) -> list[Element]:
    y = f"{top + 6}"
    line = element("line", class_=f"line {series.style}", x1=f"{left:.1f}", x2=f"{left + 18:.1f}", y1=y, y2=y)
    return [line, element("text", series.name, x=f"{left + 24:.1f}", y=f"{top + 10}")]
