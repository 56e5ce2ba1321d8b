"""Tables of the scores of exams for a terminal: of models, of their differences, and of the checkpoints of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from bertwright.cli.text import columns, terminal_width, visible, wrap
from bertwright.core.numbers import operations, short_count

if TYPE_CHECKING:
    from bertwright.exams.exam import Score
    from bertwright.exams.shapes import Curve, ScoreJson

Scores = Mapping[str, Sequence["Score"]]
_NARROWEST = 80
_WORDS = 10
"""Scores that are words, at most."""


def score_tables(scores: Scores) -> Iterator[str]:
    """A table with a row for each score and a column for each model, their differences, words, and how to read them."""
    by_model = {
        model: {(score.exam, score.name): score for score in found if not score.text} for model, found in scores.items()
    }
    rows = []
    for exam, name in dict.fromkeys(each for found in by_model.values() for each in found):
        one = next(found[exam, name] for found in by_model.values() if (exam, name) in found)
        chance = "" if one.chance is None else _shown(one, one.chance)
        rows.append((exam, name, chance, *(_cell(found.get((exam, name))) for found in by_model.values())))
    yield from columns(("exam", "score", "chance", *map(_name, scores)), rows, words=2)
    yield from _differences(by_model)
    yield from _words(scores)
    yield ""
    yield from _readings(scores)


def _differences(by_model: Mapping[str, Mapping[tuple[str, str], Score]]) -> Iterator[str]:
    """A table of how much better than the first model the others are, on the same items."""
    from bertwright.exams.interval import interval_of_mean_difference

    (first, base), *others = by_model.items()
    rows = []
    for key, score in base.items():
        cells = []
        for _, found in others:
            other = found.get(key)
            if other and score.items and len(other.items) == len(score.items):
                value, low, high = interval_of_mean_difference(other.items, score.items)
                mark = " *" if low > 0 or high < 0 else ""
                cells.append(f"{100 * value:+.1f} ({100 * low:+.1f} to {100 * high:+.1f}){mark}")
            else:
                cells.append("–")
        if any(cell != "–" for cell in cells):
            rows.append((*key, *cells))
    if rows:
        yield ""
        what = f"difference to {_name(first)} on the same items, and where 95 of 100 exams would put it; *: not 0"
        yield from wrap("", what, terminal_width())
        yield from columns(("exam", "score", *(_name(model) for model, _ in others)), rows, words=2)


def _words(scores: Scores) -> Iterator[str]:
    """The scores that are words, a line for each model."""
    by_key: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for model, found in scores.items():
        for score in found:
            if score.text:
                by_key.setdefault((score.exam, score.name), []).append((_name(model), score.text))
    for exam, group in groupby(by_key.items(), key=lambda each: each[0][0]):
        yield ""
        words = list(group)
        yield f"{exam} ({_WORDS} of {len(words)}; all: --json)" if len(words) > _WORDS else exam
        for (_, name), shown in words[:_WORDS]:
            for model, text in shown:
                beginning = f"  {visible(name)}" + (f" ({model})" if len(scores) > 1 else "")
                yield from wrap(f"{beginning}: ", visible(text), terminal_width())


def _readings(scores: Scores) -> Iterator[str]:
    """How to read the scores, a line for each that has a reading, and the intervals."""
    names: dict[tuple[str, str], dict[str, None]] = {}
    for found in scores.values():
        for score in found:
            names.setdefault((score.exam, score.healthy), {})["" if score.text else score.name] = None
    for (exam, healthy), of in names.items():
        if healthy:
            named = ", ".join(filter(None, of))
            yield from wrap(f"{exam}: ", f"{named}: {healthy}" if named else healthy, terminal_width())
    notes = "Shares are in percent. ±: half of the interval that holds 95 of 100 exams with other items."
    yield from wrap("", notes, terminal_width())


def curve_tables(curve: Curve, run: Path) -> Iterator[str]:
    """A table for each exam with a row for each checkpoint; one that is too wide for the terminal goes on below."""
    points = curve["points"]
    first = [
        (f"{point['step']:,}", short_count(point["tokens"]), f"{point['hours']:.3g}", operations(point["tflops"]))
        for point in points
    ]
    heads = ("step", "tokens", "hours", "FLOP")
    by_point = [{(s["exam"], s["name"]): s for s in point["scores"] if "text" not in s} for point in points]
    keys = list(dict.fromkeys(key for found in by_point for key in found))
    for exam, group in groupby(keys, key=lambda key: key[0]):
        yield exam
        cells = {name: [_json_cell(found.get((exam, name))) for found in by_point] for _, name in group}
        for names in _fitting(heads, first, cells):
            rows = [(*row, *(cells[name][number] for name in names)) for number, row in enumerate(first)]
            yield from columns((*heads, *names), rows, words=0)
        yield ""
    yield from wrap("", f"kept in {run / 'exams'}; the curves: bertwright report {run}", terminal_width())


def _fitting(
    heads: Sequence[str], first: Sequence[Sequence[str]], cells: Mapping[str, Sequence[str]]
) -> Iterator[list[str]]:
    """The names of the columns of each part of a table that fits the terminal."""
    room = (terminal_width() or _NARROWEST) - sum(
        max(map(len, column)) + 2 for column in zip(heads, *first, strict=True)
    )
    part: list[str] = []
    used = 0
    for name, column in cells.items():
        width = max(map(len, (name, *column))) + 2
        if part and used + width > room + 2:
            yield part
            part, used = [], 0
        part.append(name)
        used += width
    yield part


def _name(model: str) -> str:
    return Path(model).name


def _cell(score: Score | None) -> str:
    if score is None:
        return "–"
    value = _shown(score, score.value)
    if score.interval is None:
        return value
    return f"{value} ± {_shown(score, (score.interval[1] - score.interval[0]) / 2)}"


def _json_cell(score: ScoreJson | None) -> str:
    return "–" if score is None else _number(score["value"], score["share"])


def _shown(score: Score, value: float) -> str:
    return _number(value, score.share)


def _number(value: float, share: bool) -> str:
    return f"{100 * value:.1f}" if share else f"{value:.3g}"
