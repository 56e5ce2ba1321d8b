"""Line charts as inline SVG: no script, colours from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bertwright.core.numbers import percent
from bertwright.page.markup import Content, Element, element, p

WIDTH, HEIGHT = 480, 270
LEFT, RIGHT, TOP, BOTTOM = 72, 24, 12, 44
MAX_POINTS = 400
MAX_TICKS = 6

Points = Sequence[tuple[float, float]]
Format = Callable[[float], str]
Scale = Callable[[float], float]


@dataclass(frozen=True)
class Series:
    """One line of a chart."""

    name: str
    points: Points
    style: str
    """CSS classes of the line: `train`, `heldout` (with dots), `heldout second` or `baseline`, optionally with `run-0`
    to `run-7`, the colour of one of several runs."""


@dataclass(frozen=True)
class Chart:
    """What a chart shows."""

    title: str
    y_label: str
    explanation: str
    """Caption below the chart."""
    series: Sequence[Series]
    y_format: Format
    from_zero: bool = False
    """Whether the vertical axis starts at 0."""
    boundaries: Sequence[float] = ()
    """Steps at which a phase begins, drawn as vertical lines."""
    x_label: str = "optimizer step"
    x_format: Format = "{:,.0f}".format


def figure(chart: Chart) -> Element:
    """The chart as a figure with its legend and explanation."""
    shown = [series for series in chart.series if series.points]
    legend = p([element("span", series.name, class_=f"key {series.style}") for series in shown], class_="legend")
    label = f"{chart.title}: {', '.join(series.name for series in shown)}"
    return _figure(chart, legend, _picture(label, drawing(chart, shown)))


def _figure(chart: Chart, *content: Content) -> Element:
    return element("figure", element("h3", chart.title), content, element("figcaption", chart.explanation))


def _picture(label: str, content: Content) -> Element:
    size = f"0 0 {WIDTH} {HEIGHT}"
    return element("svg", content, viewBox=size, role="img", aria_label=label, xmlns="http://www.w3.org/2000/svg")


def histogram(title: str, counts: Sequence[int], highest: int, explanation: str) -> Element:
    """A figure with a histogram: `counts` of values in equal-width bins from 0 to `highest` (tokens)."""
    # Avoids division by zero when there are no sequences.
    total, wide = sum(counts) or 1, (WIDTH - LEFT - RIGHT) / len(counts)
    # An empty histogram still has an axis.
    top, bottom = max(counts) / total or 1.0, HEIGHT - BOTTOM

    def x_of(x: float) -> float:
        return LEFT + x / highest * (WIDTH - LEFT - RIGHT)

    def y_of(y: float) -> float:
        return bottom - y / (top * 1.06) * (bottom - TOP)

    chart = Chart(title, "share of sequences", explanation, (), percent, x_label="tokens")
    bars = [
        element(
            "rect",
            element(
                "title",
                f"{number * highest // len(counts) + 1:,} to {(number + 1) * highest // len(counts):,} tokens: "
                f"{count:,}",
            ),
            class_="column",
            x=f"{LEFT + number * wide + 1:.1f}",
            y=f"{y_of(count / total):.1f}",
            width=f"{wide - 2:.1f}",
            height=f"{bottom - y_of(count / total):.1f}",
        )
        for number, count in enumerate(counts)
    ]
    axes = _axes(chart, x_of, y_of, ticks(0, highest), ticks(0, top))
    return _figure(chart, _picture(title, (axes, bars)))


def ticks(low: float, high: float) -> list[float]:
    """At most `MAX_TICKS` round numbers in [low, high], spaced by 1, 2 or 5 times a power of ten."""
    if not high > low:
        return [low]
    rough = (high - low) / (MAX_TICKS - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    # Rounding may leave the intended step 1e-9 too small.
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [step * number for number in range(first, last + 1)]


def thinned(points: Points, max_points: int = MAX_POINTS) -> list[tuple[float, float]]:
    """At most `max_points` points, each the mean of a run of consecutive points; the runs are equally long."""
    # Means, not every n-th point: single rows are noisy, and jumps between the kept points must remain visible.
    run = -(-len(points) // max_points) or 1
    groups = [points[start : start + run] for start in range(0, len(points), run)]
    return [(sum(x for x, _ in group) / len(group), sum(y for _, y in group) / len(group)) for group in groups]


def drawing(chart: Chart, shown: Sequence[Series]) -> list[Element]:
    """The axes and the lines of a chart, of `WIDTH` and `HEIGHT`."""
    xs = [x for series in shown for x, _ in series.points]
    ys = [y for series in shown for _, y in series.points]
    # From 0, so that a given step has the same position in all charts of a run.
    x_low, x_high = 0.0, max(xs, default=1.0)
    y_low, y_high = _range(ys, chart.from_zero)

    def x_of(x: float) -> float:
        return LEFT + (x - x_low) / ((x_high - x_low) or 1) * (WIDTH - LEFT - RIGHT)

    def y_of(y: float) -> float:
        return HEIGHT - BOTTOM - (y - y_low) / ((y_high - y_low) or 1) * (HEIGHT - TOP - BOTTOM)

    axes = _axes(chart, x_of, y_of, ticks(x_low, x_high), ticks(y_low, y_high))
    return axes + [part for series in shown for part in _line(series, x_of, y_of, chart)]


def _range(ys: Sequence[float], from_zero: bool) -> tuple[float, float]:
    low, high = (0.0 if from_zero else min(ys, default=0.0)), max(ys, default=1.0)
    # A flat curve has no range, so its margin is relative to its value.
    room = (high - low or abs(high) or 1.0) * 0.06
    return (low if from_zero else low - room), high + room


def _axes(chart: Chart, x_of: Scale, y_of: Scale, x_ticks: list[float], y_ticks: list[float]) -> list[Element]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = []
    for y in y_ticks:
        parts.append(_straight("grid", LEFT, y_of(y), right, y_of(y)))
        parts.append(element("text", chart.y_format(y), x=f"{LEFT - 6}", y=f"{y_of(y) + 4:.1f}", text_anchor="end"))
    parts += [
        element("text", chart.x_format(x), x=f"{x_of(x):.1f}", y=f"{bottom + 17}", text_anchor="middle")
        for x in x_ticks
    ]
    parts += [_straight("phase", x_of(x), TOP, x_of(x), bottom) for x in chart.boundaries]
    parts.append(_straight("axis", LEFT, bottom, right, bottom))
    middle = {"class_": "label", "text_anchor": "middle"}
    parts.append(element("text", chart.x_label, **middle, x=f"{(LEFT + right) / 2}", y=f"{HEIGHT - 8}"))
    turned = {**middle, "transform": "rotate(-90)"}
    return [*parts, element("text", chart.y_label, **turned, x=f"{-(TOP + bottom) / 2}", y="13")]


def _straight(style: str, x1: float, y1: float, x2: float, y2: float) -> Element:
    return element("line", class_=style, x1=f"{x1:.1f}", x2=f"{x2:.1f}", y1=f"{y1:.1f}", y2=f"{y2:.1f}")


def _line(series: Series, x_of: Scale, y_of: Scale, chart: Chart) -> list[Element]:
    path = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in thinned(series.points))
    line = element("polyline", class_=f"line {series.style}", points=path)
    # Held-out scores are few: without dots, a single score would be invisible.
    if "heldout" not in series.style.split():
        return [line]
    # The last word of "optimizer step" is the unit.
    unit = chart.x_label.split()[-1]
    dots = [
        element(
            "circle",
            element("title", f"{unit} {chart.x_format(x)}: {chart.y_format(y)}"),
            class_=f"dot {series.style}",
            cx=f"{x_of(x):.1f}",
            cy=f"{y_of(y):.1f}",
            r="3",
        )
        for x, y in series.points
    ]
    return [line, *dots]
