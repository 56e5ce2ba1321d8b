"""A phase's own arithmetic."""

import pytest

from bertwright.train.config import PhaseConfig


@pytest.mark.parametrize(
    ("length", "rate", "most"), [(128, 0.15, 20), (512, 0.15, 80), (64, 0.15, 10), (128, 0.25, 33), (64, 0.4, 27)]
)
def test_left_out_the_limit_never_undoes_the_mask_rate(length: int, rate: float, most: int) -> None:
    """It was 5/32 of the length whatever the rate, so a rate of 25 % masked 15.6 % without a word."""
    phase = PhaseConfig(length=length, batch=1, learning_rate=1e-3, steps=1, mask_rate=rate)
    assert phase.predictions == most >= round(length * rate)


def test_a_given_limit_stands() -> None:
    given = PhaseConfig(length=128, batch=1, learning_rate=1e-3, steps=1, mask_rate=0.25, max_predictions=20)
    assert given.predictions == 20
