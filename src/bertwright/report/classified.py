"""Report sections of a classifier, which replace those of masked tokens: its scores, curves and texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bertwright.core.markup import Content, div, p
from bertwright.evaluate.shapes import CLASSIFIER_SCORES
from bertwright.report.chart import Chart, Points, Series, histogram
from bertwright.report.facts import Facts
from bertwright.report.formatting import NAN, definitions, large, number, percent, table

SCORES = ("classification_loss", "regression_loss", *CLASSIFIER_SCORES, "majority", "constant_loss")
"""Scores of a summary; a run has either those of classification or those of regression."""


def cards(facts: Facts) -> list[tuple[str, str, str]]:
    """The headline numbers, each with its name and a note."""
    scores = facts.scores
    shown = [(name, scores[key]) for key, name in CLASSIFIER_SCORES.items() if key in scores]
    # Scores taken during training do not include the majority share.
    majority = scores.get("majority")
    notes = {} if majority is None else {"accuracy": f"always “{scores['majority_label']}”: {percent(majority)}"}
    shares = ("accuracy", "F1")
    found = [
        (name, NAN if value is None else percent(value) if name in shares else f"{value:.3f}", notes.get(name, ""))
        for name, value in shown
    ]
    if "regression_loss" in scores:
        loss, constant = (scores.get(name) for name in ("regression_loss", "constant_loss"))
        note = "" if constant is None else f"always training's mean: {constant:.3f}"
        found.append(("mean squared error", NAN if loss is None else f"{loss:.3f}", note))
    return found


def scored(facts: Facts) -> str:
    """A sentence saying which texts were scored."""
    return f"Scores are of {facts.scores['sequences']:,} held-out texts, which training never saw."


def curves(rows: Sequence[Mapping[str, Any]], boundaries: Sequence[float]) -> list[Chart]:
    """Charts of the loss and, for classes, the accuracy over optimizer steps."""
    term = "regression" if any("regression_loss" in row for row in rows) else "classification"
    label = "squared error" if term == "regression" else "loss (nats)"
    about = "How far the numbers are from the labels." if term == "regression" else "How surprised the model is."
    charts = [_chart("Loss", label, about, rows, f"{term}_loss", boundaries)]
    if term == "classification":
        about = "How often the likeliest class is the right one."
        charts.append(_chart("Accuracy", "accuracy", about, rows, f"{term}_accuracy", boundaries))
    return charts


def _chart(
    title: str, label: str, about: str, rows: Sequence[Mapping[str, Any]], key: str, boundaries: Sequence[float]
) -> Chart:
    series = [
        Series("training", _points(rows, key), "train"),
        Series("held-out", _points(rows, f"heldout_{key}"), "heldout"),
    ]
    return Chart(title, label, about, [each for each in series if each.points], "{:.3g}".format, boundaries=boundaries)


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
