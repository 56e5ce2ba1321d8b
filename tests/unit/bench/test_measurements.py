"""The numbers that are said of blocks of steps."""

import pytest

from bertwright.bench.run import Blocks, summarize
from bertwright.bench.workload import Step


def blocks(*rounds: tuple[float, float], steps: int = 3, floor: float | None = None) -> Blocks:
    """Rounds of equal steps: seconds and processor seconds of each."""
    return [[Step(seconds, used, floor)] * steps for seconds, used in rounds]


def test_ratios_compare_blocks_of_the_same_round() -> None:
    """A machine that slows down by a half after the first round changes no ratio."""
    found = summarize(
        "w", "trainer", "fp32", blocks((3.0, 4.0), (6.0, 8.0)), own=blocks((1.0, 2.0), (2.0, 4.0)), fp32=None
    )
    assert (found.seconds, found.fastest, found.slowest, found.processor_seconds) == (4.5, 3.0, 6.0, 6.0)
    assert (found.times_as_fast, found.times_lowest, found.times_highest, found.processor_ratio) == (3, 3, 3, 2)


def test_the_range_is_that_of_the_rounds() -> None:
    own = blocks((1.0, 1.0), (1.0, 1.0), (1.0, 1.0))
    found = summarize("w", "trainer", "fp32", blocks((2.0, 8.0), (5.0, 6.0), (3.0, 7.0)), own, None)
    assert (found.times_as_fast, found.times_lowest, found.times_highest, found.processor_ratio) == (3, 2, 5, 7)


def test_a_single_slow_step_does_not_change_a_ratio() -> None:
    own = [[Step(1.0, 1.0), Step(1.0, 1.0), Step(50.0, 50.0)]]
    found = summarize("w", "trainer", "fp32", blocks((2.0, 2.0)), own, None)
    assert found.times_as_fast == 2 and summarize("w", "bertwright", "fp32", own, own, None).slowest == 50


def test_our_own_ratio_is_one() -> None:
    own = blocks((1.3, 2.6), (1.7, 3.1))
    found = summarize("w", "bertwright", "fp32", own, own, None)
    assert (found.times_as_fast, found.times_lowest, found.times_highest, found.processor_ratio) == (1, 1, 1, 1)


def test_the_floor_is_that_of_each_step() -> None:
    """Of the block it was measured before: a slower machine has a slower floor."""
    rounds = [*blocks((1.5, 3.0), floor=1.0), *blocks((4.8, 9.6), floor=3.0), *blocks((2.6, 5.0), floor=2.0)]
    found = summarize("w", "bertwright", "fp32", rounds, rounds, None)
    assert found.floor_ratio == pytest.approx(1.5)
    assert summarize("w", "trainer", "fp32", blocks((1.0, 1.0)), blocks((1.0, 1.0)), None).floor_ratio is None


def test_low_precision_is_compared_with_float32() -> None:
    low, fp32 = blocks((1.0, 1.0), (2.0, 2.0)), blocks((2.0, 2.0), (5.0, 5.0))
    found = summarize("w", "bertwright", "bf16", low, low, fp32)
    assert found.times_fp32 == pytest.approx((2.0 + 2.5) / 2) and found.times_as_fast == 1
    assert summarize("w", "bertwright", "bf16", low, low, None).times_fp32 is None


def test_sides_of_different_rounds_are_not_compared() -> None:
    with pytest.raises(ValueError, match="zip"):
        summarize("w", "trainer", "fp32", blocks((1.0, 1.0)), blocks((1.0, 1.0), (1.0, 1.0)), None)
