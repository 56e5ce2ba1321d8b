"""A clock and a counter of work for tests about time: what they show must not depend on how busy the machine is."""

import sys
import time
from collections.abc import Callable
from types import FrameType

import pytest


class Clock:
    """Stands in for the module `time`: `seconds` pass whenever it is read."""

    def __init__(self, seconds: float = 1.0) -> None:
        self.seconds, self.now = seconds, time.perf_counter()

    def perf_counter(self) -> float:
        self.now += self.seconds
        return self.now


def replace_clock(patch: pytest.MonkeyPatch, clock: Clock) -> None:
    """Make training take its time from `clock`."""
    for module in ("run", "after_step", "micro_batch", "monitor.step_stats", "scoring"):
        patch.setattr(f"bertwright.train.{module}.time", clock)


def calls(work: Callable[[], object]) -> int:
    """Count the calls of functions, Python's and C's, in `work`: how its time grows, whatever else the machine does."""
    count = 0

    def profile(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
