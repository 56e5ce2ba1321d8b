"""The charts of the metrics rows, each with its explanation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from bertwright.page.chart import Chart, Format, Series
from bertwright.report.facts import Facts
from bertwright.tasks.section import Rows, TaskSection, points


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
    return charts(facts.section, facts.metrics, facts.scores)


def charts(section: TaskSection, rows: Rows, scores: Mapping[str, Any]) -> list[Chart]:
    """The same, from the rows of metrics and the scores of a task."""
    return [*section.curves(rows, scores, _boundaries(rows)), *_single_lines(_OF_TRAINING, rows)]


def machine_curves(facts: Facts) -> list[Chart]:
    """Speed, computing, waiting and memory over the optimizer steps of all phases."""
    return list(_single_lines(_OF_THE_MACHINE, facts.metrics))


def _boundaries(rows: Rows) -> list[float]:
    return [float(before["total_steps"]) for before, after in pairwise(rows) if after["phase"] != before["phase"]]


def _single_lines(lines: Sequence[_Line], rows: Rows) -> Iterator[Chart]:
    """A chart for each of `lines`, except those whose optional value this training does not have."""
    boundaries = _boundaries(rows)
    for line in lines:
        drawn = points(rows, line.key)
        if drawn or line.always:
            series = [Series(line.title.lower(), drawn, "train")]
            yield Chart(line.title, line.label, line.explanation, series, line.format, line.from_zero, boundaries)
