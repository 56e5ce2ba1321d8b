from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter
from tests.rows import each_row

from bertwright.optim.config import ScheduleConfig
from bertwright.optim.schedule import Schedule, learning_rate

SCHEDULES: TypeAdapter[Schedule] = TypeAdapter(ScheduleConfig)


def named(kind: str | dict[str, Any]) -> Schedule:
    return SCHEDULES.validate_python(kind)


def rates(kind: str | dict[str, Any], total: int, warmup: float, peak: float = 1.0) -> list[float]:
    schedule = named(kind)
    return [learning_rate(schedule, step, total, warmup, peak) for step in range(total)]


def test_linear_by_hand() -> None:
    assert rates("linear", 8, 4) == pytest.approx([0.25, 0.5, 0.75, 1, 1, 0.75, 0.5, 0.25])
    assert rates("linear", 4, 0) == pytest.approx([1, 0.75, 0.5, 0.25])


def test_poly_has_no_jump() -> None:
    assert rates("poly", 8, 4) == pytest.approx([0.25, 0.5, 0.75, 1, 1, 0.75**0.5, 0.5**0.5, 0.5])


def test_constant_by_hand() -> None:
    assert rates("constant", 6, 3, 2e-3) == pytest.approx([2e-3 / 3, 4e-3 / 3, 2e-3, 2e-3, 2e-3, 2e-3])


def test_nvidia_phase_1_jumps_down_and_ends_at_zero() -> None:
    """Phase 1 of NVIDIA's LAMB recipe: 6e-3, 28.43 % of 7,038 steps; the drop is 15.4 %, to 5.08e-3."""
    curve = rates("poly_nvidia", 7038, 0.2843 * 7038, 6e-3)
    assert curve[0] == pytest.approx(6e-3 / 7038 / 0.2843)
    assert curve[1999] == pytest.approx(5.9973e-3, rel=1e-5)
    assert curve[2000] == pytest.approx(5.0758e-3, rel=1e-4)
    assert 1 - curve[2000] / 6e-3 == pytest.approx(0.154, abs=5e-4)
    assert curve[-1] == 0.0


def test_nvidia_phase_2_drops_by_6_6_percent() -> None:
    curve = rates("poly_nvidia", 1563, 0.128 * 1563, 4e-3)
    assert 1 - curve[200] / 4e-3 == pytest.approx(0.066, abs=1e-3)


def test_a_warm_up_before_the_phase_is_bit_equal_to_mlperfs() -> None:
    """NVIDIA's submissions, schedulers.py: progress (step - start) / warm-up up to it, then a line from step 0; steps
    are counted from 1."""
    total, warmup, start, peak = 600, 287, -76, 2.883e-3
    step_N = np.arange(1, total + 1, dtype=np.float64)
    on_the_way = step_N - start < warmup
    wanted = np.where(on_the_way, peak * (step_N - start) / warmup, peak * (1 - step_N / total))
    schedule = {"kind": "poly_nvidia", "power": 1.0, "warmup_before": -start}
    assert rates(schedule, total, warmup, peak) == pytest.approx(wanted, rel=1e-15)
    assert wanted[0] == pytest.approx(peak * 77 / 287) and on_the_way.sum() == 210


@each_row("schedule", ["linear", "poly", "constant", "cosine", "wsd"])
@each_row(("total", "warmup"), [(10, 0), (10, 1), (10, 3), (10, 3.4), (10, 10), (1, 0), (1, 1)])
def test_no_update_is_wasted_and_the_peak_is_reached_once_warm(schedule: str, total: int, warmup: float) -> None:
    curve = rates(schedule, total, warmup, 0.5)
    assert all(0 < rate <= 0.5 for rate in curve)
    assert max(curve) == pytest.approx(0.5)
    top = curve.index(max(curve))
    assert curve[: top + 1] == sorted(curve[: top + 1])
    assert curve[top:] == sorted(curve[top:], reverse=True)


def test_cosine_by_hand() -> None:
    assert rates({"kind": "cosine"}, 4, 0) == pytest.approx([1, (1 + 0.5**0.5) / 2, 0.5, (1 - 0.5**0.5) / 2])
    assert rates({"kind": "cosine", "floor": 0.2}, 4, 2, 10.0) == pytest.approx([5, 10, 10, 6])


def test_floors_and_powers_by_hand() -> None:
    assert rates({"kind": "linear", "floor": 0.5}, 4, 0) == pytest.approx([1, 0.875, 0.75, 0.625])
    assert rates({"kind": "poly", "power": 2}, 4, 0) == pytest.approx([1, 0.75**2, 0.5**2, 0.25**2])
    assert rates({"kind": "poly_nvidia", "power": 1}, 4, 0) == pytest.approx([0.75, 0.5, 0.25, 0])


def test_wsd_by_hand() -> None:
    straight = {"kind": "wsd", "decay": 0.4, "shape": "linear"}
    assert rates(straight, 10, 2) == pytest.approx([0.5, 1, 1, 1, 1, 1, 1, 0.75, 0.5, 0.25])
    early = {"kind": "wsd", "decay": 0.4, "shape": "1-sqrt"}
    assert rates(early, 10, 2)[5:] == pytest.approx([1, 1, 1 - 0.25**0.5, 1 - 0.5**0.5, 1 - 0.75**0.5])


@each_row("shape", ["linear", "1-sqrt"])
def test_a_decay_phase_has_the_last_rates_of_a_full_schedule(shape: str) -> None:
    whole = rates({"kind": "wsd", "decay": 0.25, "shape": shape}, 40, 4)
    assert whole[30:] == pytest.approx(rates({"kind": "wsd", "decay": 1.0, "shape": shape}, 10, 0))
    assert whole[:30] == rates("constant", 40, 4)[:30]
