"""Draw the next global step while the current one trains; measure how long training waits for data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Drawn = TypeVar("Drawn")


def prefetch(draw: Callable[[int], Drawn], start: int, end: int) -> Iterator[tuple[Drawn, float]]:
    """`(draw(step), seconds waited for it)` for each step in [start, end), one step drawn ahead on a thread."""
    with ThreadPoolExecutor(1, thread_name_prefix="draw") as pool:
        ahead = pool.submit(draw, start) if start < end else None
        for step in range(start, end):
            assert ahead is not None
            began = time.perf_counter()
            drawn = ahead.result()
            waited = time.perf_counter() - began
            ahead = pool.submit(draw, step + 1) if step + 1 < end else None
            yield drawn, waited
