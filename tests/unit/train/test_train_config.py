"""A phase's own arithmetic."""

import pytest

from bertwright.examples.config import MaskingConfig


@pytest.mark.parametrize(
    ("length", "rate", "most"), [(128, 0.15, 20), (512, 0.15, 80), (64, 0.15, 10), (128, 0.25, 33), (64, 0.4, 27)]
)
def test_left_out_the_limit_never_undoes_the_mask_rate(length: int, rate: float, most: int) -> None:
    """It was 5/32 of the length whatever the rate, so a rate of 25 % masked 15.6 % without a word."""
    assert MaskingConfig(rate=rate).most(length) == most >= round(length * rate)


def test_a_given_limit_stands() -> None:
    assert MaskingConfig(rate=0.25, max_predictions=20).most(128) == 20
