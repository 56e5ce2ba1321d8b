"""How fast something goes, and how long it will take."""

from __future__ import annotations

from collections import deque

from bertwright.cli.formatting import time_left

_WINDOW = 30.0
"""Seconds whose speed counts."""


class Throughput:
    """Rates over the last half minute, of what is done and of anything else that is counted."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, dict[str, float]]] = deque()

    def describe(self, now: float, done: float, total: float, unit: str, counts: dict[str, float]) -> str:
        """Such as "0:14:02 left, 5.2 MB/s, 1,210 documents/s"; "" until a second has passed.

        `now` is in seconds, and not earlier than in the call before; what is left is unknown where `total` is 0.
        """
        here = {unit: done, **counts}
        if self._seen and done < self._seen[-1][1].get(unit, done):  # another list of the same stage
            self._seen.clear()
        self._seen.append((now, here))
        while now - self._seen[0][0] > _WINDOW and len(self._seen) > 2:
            self._seen.popleft()
        then, before = self._seen[0]
        if now - then < 1:
            return ""
        rates = {name: (value - before.get(name, 0)) / (now - then) for name, value in here.items()}
        said = [f"{rate:,.0f} {name}/s" if rate >= 100 else f"{rate:.1f} {name}/s" for name, rate in rates.items()]
        if total and rates[unit]:
            said.insert(0, f"{time_left((total - done) / rates[unit])} left")
        return ", ".join(said)
