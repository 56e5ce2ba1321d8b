"""An optimizer, a schedule and an observer. Sections are read without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from bertwright.plugins import Observed, ObserverPlugin, OptimizerPlugin, SchedulePlugin, runtime_only


class SignConfig(OptimizerPlugin):
    """The sign of an average of gradients (Bernstein et al. 2018)."""

    moments = 1

    momentum: float = Field(0.9, ge=0, lt=1)
    """Decay rate of the average."""

    def build(self, groups: Any, shards: Any) -> Any:
        from toy.sign import Sign

        return Sign(groups, self.momentum)


class StairsSchedule(SchedulePlugin):
    """Halves the rate after each of some equal parts of the phase."""

    parts: int = Field(4, ge=1)
    """Number of parts."""

    def rate(self, step: int, total_steps: int, warmup_steps: float, peak: float) -> float:
        return peak * min(1.0, (step + 1) / max(warmup_steps, 1)) / 2 ** (step * self.parts // total_steps)


class LinesConfig(ObserverPlugin):
    """A file with a line for each row."""

    name: str = runtime_only("rows.txt")
    """Name of the file."""

    def build(self, observed: Observed) -> Lines:
        return Lines(observed.folder / self.name)


class Lines:
    """Writes the step and the learning rate of each row."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.seen, self._file = 0, path.open("a", encoding="utf-8")

    def record(self, row: Any) -> None:
        self._file.write(f"{row['total_steps']} {row.get('learning_rate')}\n")

    def close(self, finished: bool) -> None:
        self._file.close()
