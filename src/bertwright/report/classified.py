"""Report sections of a classifier, which replace those of masked tokens: its scores, curves and texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bertwright.core.markup import Content, div, p
from bertwright.core.numbers import large
from bertwright.evaluate.shapes import BASELINES, CLASSIFIER_SCORES, one_answer
from bertwright.report.chart import Chart, Points, Series, histogram
from bertwright.report.facts import Facts
from bertwright.report.formatting import NAN, definitions, number, percent, table

SCORES = ("classification_loss", "regression_loss", *CLASSIFIER_SCORES, *BASELINES.values())
"""Scores that runs are compared by; a run has either those of classification or those of regression."""
SUMMARY = (*SCORES, "majority_label", "answered", "repeated")
"""Scores of a summary."""


def cards(facts: Facts) -> list[tuple[str, str, str]]:
    """The headline numbers, each with its name and a note."""
    scores = facts.scores
    found = [(name, *_score(key, scores)) for key, name in CLASSIFIER_SCORES.items() if key in scores]
    if "regression_loss" in scores:
        loss, constant = (scores.get(name) for name in ("regression_loss", "constant_loss"))
        note = "" if constant is None else f"always training's mean: {constant:.3f}"
        found.append(("mean squared error", NAN if loss is None else f"{loss:.3f}", note))
    return found


def _score(key: str, scores: Mapping[str, Any]) -> tuple[str, str]:
    """A score and its note: what a constant answer scores, or why the score is undefined."""
    value, baseline = scores[key], scores.get(BASELINES.get(key, ""))
    if key in ("accuracy", "f1"):
        # Scores taken during training have no baseline of F1.
        note = "" if baseline is None else f"always “{scores['majority_label']}”: {percent(baseline)}"
        if key == "accuracy" and scores.get("repeated"):
            note += f"; {scores['repeated']:,} of the texts also occur in training"
        return percent(value), note
    if value is not None:
        return f"{value:.3f}", "of a constant answer: 0"
    if one_answer(scores):
        return "undefined", "no second class is predicted" if "answered" in scores else "one answer to every text"
    return (
        (NAN, "") if scores.get("accuracy", scores.get("regression_loss")) is None else ("undefined", "one label only")
    )


def scored(facts: Facts) -> str:
    """A sentence saying which texts were scored."""
    return f"Scores are of {facts.scores['sequences']:,} held-out texts, which training never saw."


def curves(rows: Sequence[Mapping[str, Any]], scores: Mapping[str, Any], boundaries: Sequence[float]) -> list[Chart]:
    """Charts of the loss and, for classes, the accuracy over optimizer steps, with the scores of a constant answer."""
    term = "regression" if any("regression_loss" in row for row in rows) else "classification"
    label = "squared error" if term == "regression" else "loss (nats)"
    about = "How far the numbers are from the labels." if term == "regression" else "How surprised the model is."
    loss = Chart("Loss", label, about, (), "{:.3g}".format, boundaries=boundaries)
    charts = [_drawn(loss, rows, f"{term}_loss", scores.get(BASELINES[f"{term}_loss"]))]
    if term == "classification":
        about = "How often the likeliest class is the right one."
        accuracy = Chart("Accuracy", "accuracy", about, (), percent, boundaries=boundaries)
        charts.append(_drawn(accuracy, rows, f"{term}_accuracy", scores.get("majority")))
    return charts


def _drawn(chart: Chart, rows: Sequence[Mapping[str, Any]], key: str, baseline: float | None) -> Chart:
    """The chart with the curves of a score and, as a dashed line, the score of a constant answer."""
    last = float(rows[-1]["total_steps"]) if rows else 1.0
    series = [
        Series("training", _points(rows, key), "train"),
        Series("held-out", _points(rows, f"heldout_{key}"), "heldout"),
        Series("constant answer", [] if baseline is None else [(0.0, baseline), (last, baseline)], "baseline"),
    ]
    return replace(chart, series=[each for each in series if each.points])


def _points(rows: Sequence[Mapping[str, Any]], name: str) -> Points:
    # NaN is null in JSON; leaving it out makes a gap in the curve.
    return [(float(row["total_steps"]), float(row[name])) for row in rows if row.get(name) is not None]


def examples(facts: Facts) -> Content:
    """How many texts of each class are trained on and held out, and how long they are."""
    counts = facts.counts("examples")
    parts = {"train": "training", "heldout": "held out"}
    classes = [name for name in counts["labels"] if len(counts["labels"]) > 1]
    rows = [
        (
            name,
            number(counts[split]["examples"]),
            number(counts[split]["tokens"]),
            *map(number, counts[split]["classes"]),
        )
        for split, name in parts.items()
    ]
    files = counts["heldout"]["files"]
    where = ", ".join(files) if files else "a share of the training file, selected by a hash of each text"
    repeated = counts["heldout"]["repeated"]
    lengths = [
        histogram(
            f"Lengths, cut to {name}",
            sequences["lengths"],
            int(name),
            f"{sequences['mean_length']:,.1f} tokens in the mean, special ones counted.",
        )
        for name, sequences in counts["train"]["sequences"].items()
    ]
    return (
        table(("part", "texts", "tokens", *classes), rows),
        definitions([("held out", where)]),
        div(lengths, class_="charts"),
        p(f"Of the held-out texts, {large(repeated)} also occur word for word among the training texts."),
    )


GUESSES = (
    "Held-out texts with their class and the probabilities that the model gives to the classes; the right class is "
    "in bold."
)
"""Introduces the table of predictions."""
