"""Draws the batches of a step while the previous step is trained."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Fetched = TypeVar("Fetched")


def prefetch(fetch: Callable[[int], Fetched], start: int, end: int) -> Generator[tuple[Fetched, float]]:
    """Yield `(fetch(step), seconds waited for it)` for each step in [start, end), fetching one step ahead on a
    thread."""
    with ThreadPoolExecutor(1, thread_name_prefix="loader") as pool:
        ahead = pool.submit(fetch, start) if start < end else None
        for step in range(start, end):
            assert ahead is not None
            began = time.perf_counter()
            fetched = ahead.result()
            waited = time.perf_counter() - began
            ahead = pool.submit(fetch, step + 1) if step + 1 < end else None
            yield fetched, waited
