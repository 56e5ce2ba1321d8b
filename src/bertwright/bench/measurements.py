"""Summaries of alternately measured blocks of steps: medians, ranges, and ratios of blocks from the same round."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bertwright.bench.training import Precision, Side, Step

Blocks = Sequence[Sequence[Step]]
"""The steps of each round."""


@dataclass(frozen=True)
class Measured:
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


def measured(
    workload: str, side: Side, precision: Precision, blocks: Blocks, own: Blocks, fp32: Blocks | None
) -> Measured:
    """Summarize a side's `blocks`, relative to ours in the same precision (`own`) and, if measured, to the same side in
    float32 (`fp32`)."""
    every = [step for block in blocks for step in block]
    ratios = _ratios(blocks, own, processor=False)
    floors = [step.seconds / step.floor for step in every if step.floor]
    return Measured(
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
