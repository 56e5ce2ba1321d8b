import re

import pytest
from tests.rows import each_row
from tests.unit.report.conftest import written

from bertwright.core.numbers import duration, number, percent, short_count
from bertwright.page.chart import Chart, Series, figure, thinned, ticks


@each_row(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0, 900, [0, 200, 400, 600, 800]),
        (2.1, 8.3, [4, 6, 8]),
        (0, 0.002, [0, 0.0005, 0.001, 0.0015, 0.002]),
        (5, 5, [5]),
    ],
)
def test_ticks_are_round_numbers_inside(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(expected)


def test_thinning_keeps_the_mean_and_the_bound() -> None:
    points = [(float(i), float(i * i)) for i in range(1000)]
    few = thinned(points, 100)
    assert len(few) == 100
    assert sum(y for _, y in few) / 100 == pytest.approx(sum(y for _, y in points) / 1000)
    assert len(thinned(points[:950], 100)) == 95, "a run of nine would leave more than a hundred"
    assert thinned(points[:50], 100) == points[:50]
    assert thinned([]) == []


def _chart(points: list[tuple[float, float]]) -> str:
    series = [Series("x & y", points, "heldout")]
    return written(figure(Chart("a <b>", "loss", "A sentence.", series, "{:.1f}".format, boundaries=[5])))


def test_points_lie_inside_the_picture_and_larger_is_higher() -> None:
    svg = _chart([(0.0, 1.0), (5.0, 3.0), (10.0, 2.0)])
    dots = [(float(x), float(y)) for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', svg)]
    assert len(dots) == 3
    assert all(0 < x < 480 and 0 < y < 270 for x, y in dots)
    assert dots[1][1] < dots[2][1] < dots[0][1] and dots[0][0] < dots[1][0] < dots[2][0]
    assert f'class="phase" x1="{dots[1][0]:.1f}"' in svg
    assert "a &lt;b&gt;" in svg and "x &amp; y" in svg and "<b>" not in svg


def test_one_point_and_none_can_be_drawn() -> None:
    assert "circle" in _chart([(3.0, 1.0)])
    assert "circle" not in _chart([])


def test_numbers_are_written_for_people() -> None:
    assert [percent(x).replace("\u00a0", " ") for x in (0.1234, 0.5, 0.0004)] == ["12.3 %", "50 %", "0 %"]
    assert [short_count(x) for x in (812, 51_028, 7_300_000, 2.5e9)] == ["812", "51 k", "7.3 M", "2.5 G"]
    assert [duration(x) for x in (8.24, 200, 18_720)] == ["8.2 s", "3 min 20 s", "5 h 12 min"]
    assert [number(x) for x in (1234567, 0.1, 1.6848, 51234.5)] == ["1,234,567", "0.1", "1.685", "51,234"]
