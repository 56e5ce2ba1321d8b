"""Which curves are drawn from the rows, where they break off, and what is drawn beside them."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.report.conftest import written
from tests.unit.report.test_facts import facts

from bertwright.page.chart import Chart, figure, histogram
from bertwright.report.curves import curves, machine_curves
from bertwright.report.facts import Facts


@pytest.fixture
def run(run_folder: Callable[..., Path]) -> Facts:
    return facts(run_folder())


def charts(run: Facts, *rows: dict[str, Any], **scores: Any) -> dict[str, Chart]:
    """The charts by title, of these rows instead of the run's own where there are any."""
    changed = replace(run, metrics=rows or run.metrics, scores={**run.scores, **scores})
    drawn = [*curves(changed), *machine_curves(changed)]
    return {chart.title: chart for chart in drawn}


def lines(chart: Chart) -> dict[str, list[tuple[float, float]]]:
    return {series.name: list(series.points) for series in chart.series}


def row(step: int, phase: int = 0, **values: Any) -> dict[str, Any]:
    return {"phase": phase, "step": step, "total_steps": step, **values}


def test_a_phase_begins_at_the_last_row_before_it(run: Facts) -> None:
    assert [list(chart.boundaries) for chart in charts(run).values()] == [[600.0]] * 5
    (one, *_) = charts(run, row(1, mlm_loss=2.0), row(2, mlm_loss=1.5)).values()
    assert list(one.boundaries) == []


def test_a_loss_that_is_no_number_leaves_a_gap_and_is_told(run: Facts) -> None:
    chart = charts(run, row(10, mlm_loss=4.0), row(20, mlm_loss=None), row(30, mlm_loss=3.0, heldout_mlm_loss=None))
    loss = chart["Loss of masked tokens"]
    assert lines(loss)["training"] == [(10.0, 4.0), (30.0, 3.0)] and lines(loss)["held-out"] == []
    assert loss.explanation.endswith("It is not a number (NaN), or nothing was predicted, in 2 rows, first at step 20.")
    assert "NaN" not in charts(run)["Loss of masked tokens"].explanation


def test_rows_between_scores_do_not_lower_the_curve(run: Facts) -> None:
    scored = lines(charts(run)["Accuracy"])["masked tokens"]
    assert len(scored) == 15 < len(run.metrics) and all(value > 0 for _, value in scored)


def test_known_baselines_span_the_whole_training(run: Facts) -> None:
    known = charts(run)
    assert lines(known["Loss of masked tokens"])["word frequencies"] == [(0.0, 5.9), (900.0, 5.9)]
    assert lines(known["Accuracy"])["commonest token"] == [(0.0, 0.061), (900.0, 0.061)]
    unknown = charts(run, most_common_token_accuracy=None)["Accuracy"]
    assert "commonest token" not in lines(unknown) and "dashed" not in unknown.explanation


def test_short_waits_for_data_have_different_labels_on_the_axis(run: Facts) -> None:
    waits = charts(run, row(1, data_wait_share=0.0), row(2, data_wait_share=0.0012))["Waiting for data"]
    shown = [waits.y_format(y).replace("\u00a0", " ") for y in (0.0, 0.0005, 0.001, 0.25, 1.0)]
    assert shown == ["0 %", "0.05 %", "0.1 %", "25 %", "100 %"]


def test_a_run_without_pairs_has_no_curve_of_them(run: Facts) -> None:
    rows = [{key: value for key, value in each.items() if "nsp" not in key} for each in run.metrics]
    assert list(lines(charts(run, *rows)["Accuracy"])) == ["masked tokens", "commonest token"]
    rows = [row(10, heldout_mlm_accuracy=0.1, heldout_nsp_accuracy=None)]
    assert "next sentence" not in lines(charts(run, *rows)["Accuracy"])


@pytest.mark.parametrize(("speed", "shown"), [(999.0, "999"), (1000.0, "1k"), (51_500.0, "51.5k")])
def test_speeds_are_short(speed: float, shown: str, run: Facts) -> None:
    assert charts(run)["Speed"].y_format(speed) == shown


@pytest.mark.parametrize("value", [0.0, 2.5, -1.0])
def test_a_flat_curve_stands_off_the_axes(value: float, run: Facts) -> None:
    chart = charts(run, row(1, mlm_loss=value), row(2, mlm_loss=value), unigram_loss=value)["Loss of masked tokens"]
    (path,) = re.findall(r'class="line train" points="([^"]*)"', written(figure(chart)))
    heights = {float(y) for y in re.findall(r",([-\d.]+)", path)}
    assert len(heights) == 1 and 20 < heights.pop() < 220, "the axis is at 226, the upper edge at 12"


def bars(html: str) -> list[float]:
    return [float(height) for height in re.findall(r'class="column"[^>]* height="([\d.]+)"', html)]


def test_columns_are_as_high_as_their_share_and_say_their_range() -> None:
    html = written(histogram("Lengths <64>", [10, 0, 30], 64, "A & B"))
    low, none, high = bars(html)
    assert none == 0 and high == pytest.approx(3 * low, rel=0.01) and high < 270
    assert "1 to 21 tokens: 10" in html and "43 to 64 tokens: 30" in html
    assert "Lengths &lt;64&gt;" in html and "A &amp; B" in html


def test_a_histogram_of_nothing_is_drawn() -> None:
    assert bars(written(histogram("x", [0] * 20, 512, ""))) == [0.0] * 20


def test_what_a_training_of_before_did_not_measure_has_no_chart(run: Facts) -> None:
    new = {"Loss scale", "Computing", "Time over the floor", "Waiting for data", "Memory"}
    assert not new & charts(run).keys()
    values = {"loss_scale": 65536.0, "tflops_per_second": 1.5, "floor_ratio": None, "data_wait_share": 0.01}
    drawn = charts(run, row(10, **values, memory_bytes=2_500_000_000), row(20, **values, memory_bytes=2_500_000_000))
    assert new - {"Time over the floor"} <= drawn.keys() and "Time over the floor" not in drawn
    memory = drawn["Memory"]
    assert [series.name for series in memory.series] == ["memory"] and memory.y_format(2_500_000_000) == "2.5"


def test_training_accuracy_is_drawn_beside_the_heldout_one(run: Facts) -> None:
    rows = [row(10, mlm_accuracy=0.25), row(20, mlm_accuracy=None, heldout_mlm_accuracy=0.5)]
    chart = charts(run, *rows)["Accuracy"]
    assert lines(chart)["masked tokens, in training"] == [(10.0, 0.25)]
    assert "in single steps of training" in chart.explanation
    assert "single steps" not in charts(run)["Accuracy"].explanation
