"""Benchmark training against peers: all train the same examples in separate processes, taking turns in one run.

They take turns because a machine's speed varies over minutes: only blocks of the same round are compared.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from tempfile import TemporaryFile
from typing import Self

from bertwright.bench.measurements import Measured, measured
from bertwright.bench.training import Precision, Side, Step, Training
from bertwright.bench.workload import Name
from bertwright.core.errors import DataError
from bertwright.core.signals import PROGRAMS, STARTING, check_stop, delayed

WARM_UP = 2
"""Steps of each side before measuring, for compilation, caches and first touches of memory."""


@dataclass(frozen=True)
class Setting:
    """How all sides train, and how much is measured."""

    precisions: tuple[Precision, ...] = ("fp32",)
    """Each side trains in all of these precisions."""
    threads: int = 2
    dropout: float = 0.1
    """Dropout probability of hidden states."""
    attention_dropout: float = 0.0
    """Dropout probability of attention weights."""
    rounds: int = 3
    """Number of blocks of each side."""
    steps: int = 5
    """Number of steps in a block."""

    def training(self, precision: Precision) -> Training:
        """The settings for a side in this precision."""
        return Training(precision, self.threads, self.dropout, self.attention_dropout)


def bench(
    workloads: Sequence[Name], sides: Sequence[Side], setting: Setting, say: Callable[[str], None]
) -> list[Measured]:
    """Measure `sides`, ours first, on each workload. Raises `DataError` if a side's process ends early."""
    return [found for name in workloads for found in _one(name, sides, setting, say)]


def _one(name: Name, sides: Sequence[Side], setting: Setting, say: Callable[[str], None]) -> list[Measured]:
    trained = [(side, precision) for precision in setting.precisions for side in sides]
    blocks: dict[tuple[Side, Precision], list[list[Step]]] = {each: [] for each in trained}
    with ExitStack() as stack:
        # All start before the first block, so that no start disturbs one. A side whose turn it is not waits for input.
        running = {each: stack.enter_context(_Running(each[0], name, setting.training(each[1]))) for each in trained}
        for side, precision in trained:
            say(f"{name}: {side} in {precision} is warming up")
            running[side, precision].steps(WARM_UP)
        for number in range(setting.rounds):
            say(f"{name}: round {number + 1} of {setting.rounds}")
            for each in trained:
                blocks[each].append(running[each].steps(setting.steps))
    return [
        measured(
            name,
            side,
            precision,
            blocks[side, precision],
            own=blocks[sides[0], precision],
            fp32=None if precision == "fp32" else blocks.get((side, "fp32")),
        )
        for side, precision in trained
    ]


class _Running:
    """A side in its own process, which waits for the number of steps to run next."""

    def __init__(self, side: Side, name: Name, training: Training) -> None:
        self.name = f"{side} in {training.precision}"
        # Not a pipe: nobody reads it before the end, and a full pipe would stop the side.
        self.errors = TemporaryFile("w+")  # noqa: SIM115 (closed on leaving)
        command = [sys.executable, "-m", "bertwright.bench.worker", side, name, json.dumps(asdict(training))]
        pipe = subprocess.PIPE
        with STARTING, delayed():
            self.process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=self.errors, text=True, process_group=0
            )
            PROGRAMS[self.process] = self.name

    def steps(self, number: int) -> list[Step]:
        """Run `number` steps and return the measurements of each."""
        assert self.process.stdin and self.process.stdout
        check_stop()
        try:
            self.process.stdin.write(f"{number}\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self.errors.seek(0)
            last = (self.errors.read().strip().splitlines() or ["no error message"])[-1]
            raise DataError(f"{self.name} ended while it was measured: {last}")
        return [Step(*step) for step in json.loads(answer)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Not asked to end, because a side has nothing to save.
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout, self.errors):
            with suppress(BrokenPipeError):  # the reader of unflushed input is gone
                if pipe:
                    pipe.close()
        self.process.wait()
        PROGRAMS.pop(self.process, None)
