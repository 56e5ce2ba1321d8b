"""What the checkpoints of a run score in exams, by tokens, hours and operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from bertwright.core.numbers import operations, percent, short_count
from bertwright.exams.shapes import Curve, Scored, ScoreJson
from bertwright.page.chart import Chart, Format, Series, figure
from bertwright.page.markup import Content, div, element, table
from bertwright.report.facts import Facts

_MOST = 8
"""Lines of a chart: there are as many colours."""


class _Axis(NamedTuple):
    """What the scores are drawn over."""

    of: Callable[[Scored], float]
    label: str
    format: Format


_AXES = (
    _Axis(lambda point: point["tokens"], "tokens", short_count),
    _Axis(lambda point: point["hours"], "hours of training", lambda x: f"{x:.3g}"),
    _Axis(lambda point: point["tflops"], "operations (10^12)", lambda x: f"{x:.3g}"),
)


def exams(facts: Facts) -> Content:
    """Charts and a table for each suite."""
    return [
        (
            element("h3", f"Suite {curve['suite']}"),
            div(map(figure, _charts(curve)), class_="charts"),
            element("details", element("summary", "All scores of the checkpoints"), _table(curve)),
            _words(curve),
        )
        for curve in facts.exams
    ]


def _charts(curve: Curve) -> Iterator[Chart]:
    """Shares that are right with their chance level together, over each axis; other scores over tokens."""
    scores = {(score["exam"], score["name"]): score for point in curve["points"] for score in point["scores"]}
    right = [key for key, score in scores.items() if score["chance"] is not None][:_MOST]
    for axis in _AXES if right else ():
        series = [Series(": ".join(key), _points(curve, key, axis), f"train run-{n}") for n, key in enumerate(right)]
        chances = {scores[key]["chance"] for key in right}
        for chance in sorted(chance for chance in chances if chance is not None) if len(chances) < 3 else ():
            ends = [(axis.of(point), chance) for point in (curve["points"][0], curve["points"][-1])]
            series.append(Series(f"chance: {percent(chance)}", ends, "baseline"))
        yield Chart(
            f"Right answers over {axis.label}",
            "share",
            "The share of items that a checkpoint answers right, on the same items each time; the first point is the "
            "network with random weights. Differences below the intervals in the table are noise.",
            series,
            percent,
            x_label=axis.label,
            x_format=axis.format,
        )
    for key, score in scores.items():
        if score["chance"] is None and "text" not in score:
            drawn = _points(curve, key, _AXES[0])
            form: Format = percent if score["share"] else lambda y: f"{y:.3g}"
            name = f"{key[0]}: {key[1]}"
            yield Chart(
                name, key[1], _sentence(score), [Series(key[1], drawn, "train")], form,
                x_label=_AXES[0].label, x_format=_AXES[0].format,
            )  # fmt: skip


def _sentence(score: ScoreJson) -> str:
    return f"A healthy model: {score['healthy']}." if score["healthy"] else ""


def _points(curve: Curve, key: tuple[str, str], axis: _Axis) -> list[tuple[float, float]]:
    return [
        (axis.of(point), score["value"])
        for point in curve["points"]
        for score in point["scores"]
        if (score["exam"], score["name"]) == key
    ]


def _table(curve: Curve) -> Content:
    """All numbers, a row for each checkpoint and score."""
    rows = [
        (f"{point['step']:,}", short_count(point["tokens"]), operations(point["tflops"]), *_cells(score))
        for point in curve["points"]
        for score in point["scores"]
        if "text" not in score
    ]
    return table(("step", "tokens", "operations", "exam", "score", "value", "interval"), rows)


def _cells(score: ScoreJson) -> tuple[str, str, str, str]:
    form: Format = percent if score["share"] else lambda y: f"{y:.3g}"
    interval = "" if score["interval"] is None else " to ".join(map(form, score["interval"]))
    return score["exam"], score["name"], form(score["value"]), interval


def _words(curve: Curve) -> Content:
    """The scores of the last checkpoint that are words."""
    rows = [(score["exam"], score["name"], score["text"]) for score in curve["points"][-1]["scores"] if "text" in score]
    shown = table(("exam", "word", "of the last checkpoint"), rows)
    return element("details", element("summary", "Words"), shown) if rows else ()
