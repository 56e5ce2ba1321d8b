"""Benchmark training against peers: all train the same examples in separate processes, taking turns in one run.

They take turns because a machine's speed varies over minutes: only blocks of the same round are compared.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace

from bertwright.bench.workload import Name, Precision, Side, Step, Training
from bertwright.core.child_process import answering_child
from bertwright.core.subprocess_group import PYTHON

WARM_UP = 2
"""Steps of each side before measuring, for compilation, caches and first touches of memory."""


@dataclass(frozen=True)
class Setting:
    """How all sides train, and how much is measured."""

    precisions: tuple[Precision, ...] = ("fp32",)
    """Each side trains in all of these precisions."""
    training: Training = field(default_factory=Training)
    """The other settings of all sides."""
    rounds: int = 3
    """Number of blocks of each side."""
    steps: int = 5
    """Number of steps in a block."""


def bench(
    workloads: Sequence[Name], sides: Sequence[Side], setting: Setting, say: Callable[[str], None]
) -> list[Measurement]:
    """Measure `sides`, ours first, on each workload. Raises `DataError` if a side's process ends early."""
    return [found for name in workloads for found in _one(name, sides, setting, say)]


def _one(name: Name, sides: Sequence[Side], setting: Setting, say: Callable[[str], None]) -> list[Measurement]:
    trained = [(side, precision) for precision in setting.precisions for side in sides]
    blocks: dict[tuple[Side, Precision], list[list[Step]]] = {each: [] for each in trained}
    with ExitStack() as stack:
        # All start before the first block, so that no start disturbs one. A side whose turn it is not waits for input.
        run_steps = {
            (side, precision): stack.enter_context(_side(side, name, replace(setting.training, precision=precision)))
            for side, precision in trained
        }
        for side, precision in trained:
            say(f"{name}: {side} in {precision} is warming up")
            run_steps[side, precision](WARM_UP)
        for number in range(setting.rounds):
            say(f"{name}: round {number + 1} of {setting.rounds}")
            for each in trained:
                blocks[each].append(run_steps[each](setting.steps))
    return [
        summarize(
            name,
            side,
            precision,
            blocks[side, precision],
            own=blocks[sides[0], precision],
            fp32=None if precision == "fp32" else blocks.get((side, "fp32")),
        )
        for side, precision in trained
    ]


Blocks = Sequence[Sequence[Step]]
"""The steps of each round."""


@dataclass(frozen=True)
class Measurement:
    """One side on one workload in one precision; times are per step."""

    workload: str
    side: Side
    precision: Precision
    seconds: float
    """Median."""
    fastest: float
    slowest: float
    processor_seconds: float
    """Median, summed over all threads."""
    times_as_fast: float
    """How many times as fast ours in the same precision is: median over the rounds; 1 for ourselves."""
    times_lowest: float
    """The same in our slowest round."""
    times_highest: float
    """The same in our fastest round."""
    processor_ratio: float
    """The side's processor seconds over ours, median over the rounds."""
    floor_ratio: float | None
    """Our seconds over the time of the same operations at the speed of the matrix products alone, median over the
    steps; None for a peer."""
    times_fp32: float | None
    """How many times as fast as the same side in float32, median over the rounds; None for float32 itself, and if
    float32 was not measured in the same run."""


@contextmanager
def _side(side: Side, name: Name, training: Training) -> Iterator[Callable[[int], list[Step]]]:
    """Yield a function that runs a number of steps of a side, in a process of its own, and returns those steps."""
    command = [*PYTHON, "-m", "bertwright.bench.worker", side, name, json.dumps(asdict(training))]
    with answering_child(command, f"{side} in {training.precision}") as ask:
        yield lambda number: [Step(*step) for step in json.loads(ask(str(number).encode()))]


def summarize(
    workload: str, side: Side, precision: Precision, blocks: Blocks, own: Blocks, fp32: Blocks | None
) -> Measurement:
    """Summarize a side's `blocks`, relative to ours in the same precision (`own`) and, if measured, to the same side in
    float32 (`fp32`)."""
    every = [step for block in blocks for step in block]
    ratios = _ratios(blocks, own, processor=False)
    floors = [step.seconds / step.floor for step in every if step.floor]
    return Measurement(
        workload,
        side,
        precision,
        seconds=statistics.median(step.seconds for step in every),
        fastest=min(step.seconds for step in every),
        slowest=max(step.seconds for step in every),
        processor_seconds=statistics.median(step.processor_seconds for step in every),
        times_as_fast=statistics.median(ratios),
        times_lowest=min(ratios),
        times_highest=max(ratios),
        processor_ratio=statistics.median(_ratios(blocks, own, processor=True)),
        floor_ratio=statistics.median(floors) if floors else None,
        times_fp32=None if fp32 is None else statistics.median(_ratios(fp32, blocks, processor=False)),
    )


def _ratios(blocks: Blocks, others: Blocks, processor: bool) -> list[float]:
    """For each round, the ratio of the median step times, `blocks` over `others`."""
    return [_median(one, processor) / _median(other, processor) for one, other in zip(blocks, others, strict=True)]


def _median(block: Sequence[Step], processor: bool) -> float:
    # Not the mean: a single step that another process delays must not decide a ratio.
    return statistics.median(step.processor_seconds if processor else step.seconds for step in block)
