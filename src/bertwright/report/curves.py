"""Which curves are drawn from the rows of metrics, and what each one tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from bertwright.report.chart import Chart, Points, Series
from bertwright.report.facts import Facts
from bertwright.report.words import percent

Rows = Sequence[Mapping[str, Any]]


def curves(facts: Facts) -> list[Chart]:
    """Loss, accuracy, learning rate and speed over the optimizer steps of all phases."""
    rows, scores = facts.metrics, facts.counts("evaluate")
    boundaries = [float(before["total_steps"]) for before, after in pairwise(rows) if after["phase"] != before["phase"]]
    return [
        _loss(rows, scores["unigram_loss"], boundaries),
        _accuracy(rows, scores, boundaries),
        Chart(
            "Learning rate",
            "learning rate",
            "The step size: it rises during the warm-up and then follows the schedule of the phase.",
            [Series("learning rate", _points(rows, "learning_rate"), "train")],
            lambda y: f"{y:.2g}",
            from_zero=True,
            boundaries=boundaries,
        ),
        Chart(
            "Speed",
            "tokens per second",
            "Real tokens (no padding) trained on per second, all ranks together; dips show a busy machine.",
            [Series("tokens per second", _points(rows, "tokens_per_second"), "train")],
            lambda y: f"{y / 1000:g}k" if y >= 1000 else f"{y:g}",
            from_zero=True,
            boundaries=boundaries,
        ),
    ]


def _loss(rows: Rows, unigram: float, boundaries: Sequence[float]) -> Chart:
    last = float(rows[-1]["total_steps"]) if rows else 1.0
    return Chart(
        "Loss of masked tokens",
        "loss (nats)",
        "How surprised the model is by the masked tokens. Below the dashed line it uses the context: "
        "that line is what word frequencies alone achieve on the held-out text.",
        [
            Series("training", _points(rows, "mlm_loss"), "train"),
            Series("held-out", _points(rows, "heldout_mlm_loss"), "heldout"),
            Series("word frequencies", [(0.0, unigram), (last, unigram)], "baseline"),
        ],
        lambda y: f"{y:.3g}",
        boundaries=boundaries,
    )


def _accuracy(rows: Rows, scores: Mapping[str, Any], boundaries: Sequence[float]) -> Chart:
    last, commonest = (float(rows[-1]["total_steps"]) if rows else 1.0), scores["commonest_accuracy"]
    series = [Series("masked tokens", _points(rows, "heldout_mlm_accuracy"), "heldout")]
    if scores["nsp_accuracy"] is not None:
        series.append(Series("next sentence", _points(rows, "heldout_nsp_accuracy"), "heldout second"))
    return Chart(
        "Held-out accuracy",
        "accuracy",
        "How often the best guess is right on text that training never saw. "
        "The dashed line always guesses the commonest token.",
        [*series, Series("commonest token", [(0.0, commonest), (last, commonest)], "baseline")],
        percent,
        from_zero=True,
        boundaries=boundaries,
    )


def _points(rows: Rows, name: str) -> Points:
    return [(float(row["total_steps"]), float(row[name])) for row in rows if row.get(name) is not None]
