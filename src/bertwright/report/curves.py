"""The charts of the metrics rows, each with its explanation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from bertwright.report import classified
from bertwright.report.chart import Chart, Format, Points, Series
from bertwright.report.facts import Facts
from bertwright.report.formatting import percent
from bertwright.report.terms import further_terms

Rows = Sequence[Mapping[str, Any]]


class _Line(NamedTuple):
    """A chart of a single value of the metrics rows."""

    key: str
    title: str
    label: str
    """Label of the vertical axis."""
    explanation: str
    format: Format
    from_zero: bool = True
    always: bool = True
    """Whether the chart is drawn even if no row has the value."""


_OF_TRAINING = (
    _Line(
        "grad_norm",
        "Gradient norm",
        "norm",
        "The length of the gradient before clipping, averaged over the steps since the previous point. Jumps warn of "
        "divergence.",
        lambda y: f"{y:.3g}",
    ),
    _Line(
        "learning_rate",
        "Learning rate",
        "learning rate",
        "The step size: it rises during the warm-up and then follows the schedule of the phase.",
        lambda y: f"{y:.2g}",
    ),
    _Line(
        "loss_scale",
        "Loss scale",
        "factor",
        "The factor of the loss in float16: halved where a gradient overflows, doubled after a long time without.",
        lambda y: f"{y:,.0f}",
        always=False,
    ),
)
_OF_THE_MACHINE = (
    _Line(
        "tokens_per_second",
        "Speed",
        "tokens per second",
        "Real tokens (no padding) trained on per second, all ranks together; dips show a busy machine.",
        lambda y: f"{y / 1000:g}k" if y >= 1000 else f"{y:g}",
    ),
    _Line(
        "tflops_per_second",
        "Computing",
        "TFLOP/s",
        "Operations of the model per second, forward and backward, in 10^12, all ranks together: those of its linear "
        "layers and of attention for real tokens; in the last layer only those whose results are used.",
        lambda y: f"{y:.3g}",
        always=False,
    ),
    _Line(
        "floor_ratio",
        "Time over the floor",
        "ratio",
        "The time of a step over what its operations would take at the speed of the network's matrix products alone, "
        "measured when training started. At 1, a step would consist of matrix products only.",
        lambda y: f"{y:.3g}",
        always=False,
    ),
    _Line(
        "data_wait_share",
        "Waiting for data",
        "share of the time",
        "Share of the time in which the model waited for its next batch.",
        lambda y: f"{y * 100:.3g}\u00a0%",
        always=False,
    ),
    _Line(
        "memory_bytes",
        "Memory",
        "GB",
        "The highest memory use of the first rank so far: tensors on a GPU, or else the whole process.",
        lambda y: f"{y / 1e9:.3g}",
        always=False,
    ),
)


def curves(facts: Facts) -> list[Chart]:
    """Loss, accuracy, gradient norm and learning rate over the optimizer steps of all phases."""
    rows, scores, boundaries = facts.metrics, facts.scores, _boundaries(facts.metrics)
    if facts.labels:
        return [*classified.curves(rows, scores, boundaries), *_single_lines(_OF_TRAINING, rows)]
    return [
        _loss(rows, scores["unigram_loss"], boundaries),
        _accuracy(rows, scores, boundaries),
        *further_terms(rows, boundaries),
        *_single_lines(_OF_TRAINING, rows),
    ]


def machine_curves(facts: Facts) -> list[Chart]:
    """Speed, computing, waiting and memory over the optimizer steps of all phases."""
    return list(_single_lines(_OF_THE_MACHINE, facts.metrics))


def _boundaries(rows: Rows) -> list[float]:
    return [float(before["total_steps"]) for before, after in pairwise(rows) if after["phase"] != before["phase"]]


def _single_lines(lines: Sequence[_Line], rows: Rows) -> Iterator[Chart]:
    """A chart for each of `lines`, except those whose optional value this training does not have."""
    boundaries = _boundaries(rows)
    for line in lines:
        points = _points(rows, line.key)
        if points or line.always:
            series = [Series(line.title.lower(), points, "train")]
            yield Chart(line.title, line.label, line.explanation, series, line.format, line.from_zero, boundaries)


def _loss(rows: Rows, unigram: float, boundaries: Sequence[float]) -> Chart:
    last = float(rows[-1]["total_steps"]) if rows else 1.0
    return Chart(
        "Loss of masked tokens",
        "loss (nats)",
        "How surprised the model is by the masked tokens. Below the dashed line it uses the context: "
        "that line is what word frequencies alone achieve on the held-out text." + _not_numbers(rows),
        [
            Series("training", _points(rows, "mlm_loss"), "train"),
            Series("held-out", _points(rows, "heldout_mlm_loss"), "heldout"),
            Series("word frequencies", [(0.0, unigram), (last, unigram)], "baseline"),
        ],
        lambda y: f"{y:.3g}",
        boundaries=boundaries,
    )


def _accuracy(rows: Rows, scores: Mapping[str, Any], boundaries: Sequence[float]) -> Chart:
    last, baseline_accuracy = (float(rows[-1]["total_steps"]) if rows else 1.0), scores["most_common_token_accuracy"]
    series = [Series("masked tokens", _points(rows, "heldout_mlm_accuracy"), "heldout")]
    # A run without sentence pairs has no such score; an empty curve would look like a failure.
    for task, name in (("nsp", "next sentence"), ("sop", "sentence order")):
        if any(row.get(f"heldout_{task}_accuracy") is not None for row in rows):
            series.append(Series(name, _points(rows, f"heldout_{task}_accuracy"), "heldout second"))
    points = [(0.0, baseline_accuracy), (last, baseline_accuracy)]
    training = Series("masked tokens, in training", _points(rows, "mlm_accuracy"), "train")
    # Only the stage evaluate takes this score: an unfinished training does not have it.
    baseline = [] if baseline_accuracy is None else [Series("commonest token", points, "baseline")]
    return Chart(
        "Accuracy",
        "accuracy",
        "How often the best guess is right on text that training never saw"
        + (", and in single steps of training, with dropout." if training.points else ".")
        + (" The dashed line always guesses the commonest token." if baseline else ""),
        [*([training] if training.points else []), *series, *baseline],
        percent,
        from_zero=True,
        boundaries=boundaries,
    )


def _not_numbers(rows: Rows) -> str:
    """A sentence saying where there is no loss, "" if nowhere; the curve has gaps there."""
    steps = [
        row["total_steps"] for row in rows for name in ("mlm_loss", "heldout_mlm_loss") if row.get(name, 0) is None
    ]
    where = f"in {len(steps):,} rows, first at step {steps[0]:,}" if steps else ""
    return f" It is not a number (NaN), or nothing was predicted, {where}." if steps else ""


def _points(rows: Rows, name: str) -> Points:
    # NaN is null in JSON; leaving it out makes a gap in the curve.
    return [(float(row["total_steps"]), float(row[name])) for row in rows if row.get(name) is not None]
