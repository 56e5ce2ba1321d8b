import pytest
from pydantic import TypeAdapter

from bertwright.optim.config import ScheduleConfig
from bertwright.optim.schedule import Schedule, learning_rate


def named(kind: str) -> Schedule:
    return TypeAdapter(ScheduleConfig).validate_python(kind)


def rates(kind: str, total: int, warmup: float, peak: float = 1.0) -> list[float]:
    return [learning_rate(named(kind), step, total, warmup, peak) for step in range(total)]


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


@pytest.mark.parametrize("schedule", ["linear", "poly", "constant"])
@pytest.mark.parametrize(("total", "warmup"), [(10, 0), (10, 1), (10, 3), (10, 3.4), (10, 10), (1, 0), (1, 1)])
def test_no_update_is_wasted_and_the_peak_is_reached_once_warm(schedule: str, total: int, warmup: float) -> None:
    curve = rates(schedule, total, warmup, 0.5)
    assert all(0 < rate <= 0.5 for rate in curve)
    assert max(curve) == pytest.approx(0.5)
    top = curve.index(max(curve))
    assert curve[: top + 1] == sorted(curve[: top + 1])
    assert curve[top:] == sorted(curve[top:], reverse=True)
