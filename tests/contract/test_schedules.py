"""Every learning-rate schedule: it rises to the peak, never exceeds it, and has a short name."""

import pytest
from pydantic import TypeAdapter
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.core.section_fields import members
from bertwright.optim.config import ScheduleConfig
from bertwright.optim.schedule import Schedule, learning_rate

SCHEDULES = members(ScheduleConfig)
PHASES = [(10, 0), (10, 1), (10, 3), (10, 3.4), (10, 10), (1, 0), (1, 1), (7038, 0.2843 * 7038)]


def named(kind: str) -> Schedule:
    schedule: Schedule = TypeAdapter(ScheduleConfig).validate_python(kind)
    return schedule


def kind_of(schedule: type) -> str:
    kind: str = schedule.model_fields["kind"].default  # type: ignore[attr-defined]
    return kind


@pytest.mark.parametrize("schedule", SCHEDULES, ids=kind_of)
@each_row(("total", "warmup"), PHASES)
def test_rates_rise_to_the_peak_and_never_leave_it_upwards(schedule: type, total: int, warmup: float) -> None:
    rates = [learning_rate(schedule(), step, total, warmup, 0.5) for step in range(total)]
    assert all(0 <= rate <= 0.5 for rate in rates)
    top = rates.index(max(rates))
    assert rates[: top + 1] == sorted(rates[: top + 1]), "it falls before the peak"
    assert abs(top + 1 - warmup) <= 1 or warmup <= 1, "the peak is not at the end of the warm-up"


@pytest.mark.parametrize("schedule", SCHEDULES, ids=kind_of)
def test_its_name_is_short_for_its_section(schedule: type) -> None:
    assert (
        named(kind_of(schedule)) == schedule() == TypeAdapter(ScheduleConfig).validate_python(schedule().model_dump())
    )


@pytest.mark.parametrize("schedule", SCHEDULES, ids=kind_of)
def test_steps_outside_the_phase_and_warm_ups_beyond_it_are_refused(schedule: type) -> None:
    for step, warmup, said in ((-1, 1, "no learning rate"), (10, 1, "no learning rate"), (0, 11, "warm-up of 11")):
        with pytest.raises(RecipeError, match=said):
            learning_rate(schedule(), step, 10, warmup, 1.0)
