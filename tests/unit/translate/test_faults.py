"""Contradictions of a phase's numbers: by hand from the numbers that were published."""

from typing import Any

from tests.rows import each_row

from bertwright.translate.command import Key
from bertwright.translate.draft import Draft
from bertwright.translate.questions import faults


def found(ranks: int = 1, **values: Any) -> list[str]:
    """The faults of a phase of length 128; a batch says where it is from."""
    keys = {"length": 128, "learning_rate": 1e-4, **{name.replace("__", "."): value for name, value in values.items()}}
    phase = {name: Key(name, value, "--said") for name, value in keys.items()}
    return list(faults(Draft(phases=[phase]), ranks))


@each_row(("warmup", "drop"), [(0.2843, "15.4%"), (0.128, "6.6%"), (0.5, "29.3%")])
def test_the_rate_of_nvidias_schedule_falls_at_the_end_of_the_warm_up(warmup: float, drop: str) -> None:
    """From the peak to the square root of the rest: 1 - sqrt(1 - warmup)."""
    (text,) = found(schedule="poly_nvidia", warmup=warmup)
    assert text.startswith("train.phases.0:") and drop in text


@each_row("keys", [{"schedule": "poly", "warmup": 0.2843}, {"warmup": 0.2843}])
def test_other_schedules_do_not_fall(keys: dict[str, Any]) -> None:
    assert found(**keys) == []


@each_row("warmup", [0.0, 1, 2000])
def test_without_a_share_the_fall_is_not_known(warmup: float) -> None:
    assert found(schedule="poly_nvidia", warmup=warmup) == []


def test_a_published_rate_with_another_batch_is_told_with_the_processes_that_fit() -> None:
    """NVIDIA's rate of 6e-3 is for 65,536 sequences of 128; 8 processes of 1,024 have an eighth of them."""
    (text,) = found(ranks=8, learning_rate=6e-3, batch=8192)
    assert "8 processes is 8,192" in text and "64 processes it would be 65,536" in text and "0.006" in text
    for batch in (65536, 60000, 72000):
        assert found(ranks=8, learning_rate=6e-3, batch=batch) == [], "within a tenth"
    for batch in (58000, 73000):
        assert found(ranks=8, learning_rate=6e-3, batch=batch)
    assert found(ranks=8, learning_rate=5e-3, batch=8192) == [], "a rate of its own"


def test_nothing_is_said_of_a_batch_that_no_command_gives_or_a_length_that_is_not_published() -> None:
    phase = {"length": Key("length", 128), "learning_rate": Key("learning_rate", 6e-3)}
    unsaid = {**phase, "batch": Key("batch", 8, "not set by the commands: NVIDIA's at 128")}
    assert list(faults(Draft(phases=[unsaid, phase]), 1)) == []
    assert found(length=256, learning_rate=6e-3, batch=8) == []
    (text,) = found(length=512, learning_rate=4e-3, batch=256, ranks=1)
    assert "32,768" in text


def test_few_predictions_of_a_long_sequence_are_told_with_their_share() -> None:
    """20 predictions are for 128 tokens (15.6 %); of 512 tokens they are 3.9 %."""
    (text,) = found(length=512, masking__max_predictions=20)
    assert "at most 20 predictions of 512" in text and "3.9%" in text
    assert found(masking__max_predictions=20) == found(length=512, masking__max_predictions=80) == []
    assert found(length=512, masking__max_predictions=0) == found(length=512) == []
    assert found(length=100, masking__max_predictions=12) == [] and found(length=100, masking__max_predictions=11)


def test_each_phase_is_told_by_its_number() -> None:
    phase = {"length": Key("length", 512), "masking.max_predictions": Key("masking.max_predictions", 20)}
    first, second = faults(Draft(phases=[phase, phase]), 1)
    assert first.startswith("train.phases.0:") and second.startswith("train.phases.1:")
