"""Training beside a peer: both train the same examples in processes of their own, in turn, in one run.

In turn, because a machine's speed changes by the minute: what is compared is always the block just before or after.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import Literal, Self

from bertwright.bench.workload import Name
from bertwright.core.errors import DataError

Side = Literal["bertwright", "trainer", "trainer-tuned"]
Times = list[tuple[float, float]]
"""Seconds and processor seconds of each step."""
WARM_UP = 2
"""Steps of each side before anything counts: compilers, caches and first touches of memory."""


@dataclass(frozen=True)
class Setting:
    """How both sides train."""

    threads: int = 2
    dropout: float = 0.1
    """Of hidden states; attention weights are not dropped."""
    precision: Literal["fp32", "bf16"] = "fp32"
    rounds: int = 3
    """Blocks of each side."""
    steps: int = 5
    """Steps of a block."""


@dataclass(frozen=True)
class Measured:
    """One side on one workload."""

    workload: str
    side: str
    seconds: float
    """Median of a step."""
    fastest: float
    slowest: float
    processor_seconds: float
    """Median of a step, all threads."""
    times_as_fast: float
    """Median over the rounds of the peer's seconds by ours; 1 for ourselves."""
    processor_ratio: float
    """The same of processor seconds."""


def bench(
    workloads: Sequence[Name], sides: Sequence[Side], setting: Setting, say: Callable[[str], None]
) -> list[Measured]:
    """Measure `sides`, ours first, on each workload. `DataError` where a side ends before its time."""
    return [measured for name in workloads for measured in _one(name, sides, setting, say)]


def _one(name: Name, sides: Sequence[Side], setting: Setting, say: Callable[[str], None]) -> list[Measured]:
    blocks: dict[Side, list[Times]] = {side: [] for side in sides}
    with ExitStack() as stack:
        running = {side: stack.enter_context(_Running(side, name, setting)) for side in sides}
        for side in sides:
            say(f"{name}: {side} warms up")
            running[side].steps(WARM_UP)
        for number in range(setting.rounds):
            say(f"{name}: round {number + 1} of {setting.rounds}")
            for side in sides:
                blocks[side].append(running[side].steps(setting.steps))
    return [_measured(name, side, blocks[side], blocks[sides[0]]) for side in sides]


class _Running:
    """A side in a process of its own, which waits for a number of steps to do."""

    def __init__(self, side: Side, name: Name, setting: Setting) -> None:
        self.side = side
        self.errors = TemporaryFile("w+")  # noqa: SIM115 (closed on leaving)
        arguments = [side, name, setting.dropout, setting.precision, setting.threads]
        command = [sys.executable, "-m", "bertwright.bench.side", *map(str, arguments)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self.errors, text=True)

    def steps(self, number: int) -> Times:
        """What each of so many steps takes."""
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(f"{number}\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self.errors.seek(0)
            last = (self.errors.read().strip().splitlines() or ["it said nothing"])[-1]
            raise DataError(f"{self.side} ended while it was measured: {last}")
        return [(seconds, used) for seconds, used in json.loads(answer)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout, self.errors):
            with suppress(BrokenPipeError):  # what was still to be written has no reader
                if pipe:
                    pipe.close()
        self.process.wait()


def _measured(name: str, side: str, blocks: list[Times], own: list[Times]) -> Measured:
    every = [step for block in blocks for step in block]
    seconds = [wall for wall, _ in every]
    ratios = [
        [statistics.median(s[kind] for s in theirs) / statistics.median(s[kind] for s in ours) for kind in (0, 1)]
        for theirs, ours in zip(blocks, own, strict=True)
    ]
    return Measured(
        workload=name,
        side=side,
        seconds=statistics.median(seconds),
        fastest=min(seconds),
        slowest=max(seconds),
        processor_seconds=statistics.median(used for _, used in every),
        times_as_fast=statistics.median(ratio[0] for ratio in ratios),
        processor_ratio=statistics.median(ratio[1] for ratio in ratios),
    )
