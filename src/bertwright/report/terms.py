"""Charts of the loss terms that pre-training does not have, one for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bertwright.report.chart import Chart, Points, Series

_SHOWN = ("mlm", "nsp", "sop")
"""Terms charted elsewhere."""
_SAID = {
    "soft": (
        "Loss of the teacher's answers",
        "loss (nats)",
        "How surprised the model is by the teacher's predictions, both softened. If both agree, the loss is the "
        "teacher's own uncertainty, not 0.",
    ),
    "hidden": (
        "Angle to the teacher's hidden states",
        "1 - cosine",
        "How far the hidden states of the masked tokens point from the teacher's, a mean over the compared layers: 0 "
        "is the same direction, 1 a right angle.",
    ),
}


def further_terms(rows: Sequence[Mapping[str, Any]], boundaries: Sequence[float]) -> list[Chart]:
    """A chart for each term in the metrics rows that is not one of pre-training, in row order."""
    losses = [key for row in rows[:1] for key in row if key.endswith("_loss") and not key.startswith("heldout_")]
    names = [loss.removesuffix("_loss") for loss in losses]
    return [_chart(name, rows, boundaries) for name in names if name not in _SHOWN]


def _chart(name: str, rows: Sequence[Mapping[str, Any]], boundaries: Sequence[float]) -> Chart:
    title, label, explanation = _SAID.get(name, (f"Loss of the term {name}", "loss", "A term of the loss, a mean."))
    return Chart(
        title,
        label,
        explanation,
        [
            Series("training", _points(rows, f"{name}_loss"), "train"),
            Series("held-out", _points(rows, f"heldout_{name}_loss"), "heldout"),
        ],
        lambda y: f"{y:.3g}",
        boundaries=boundaries,
    )


def _points(rows: Sequence[Mapping[str, Any]], name: str) -> Points:
    # NaN is null in JSON; leaving it out makes a gap in the curve.
    return [(float(row["total_steps"]), float(row[name])) for row in rows if row.get(name) is not None]
