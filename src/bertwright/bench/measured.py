"""Blocks of steps, measured in turn, in numbers: medians, ranges, and ratios of blocks that stand side by side."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bertwright.bench.training import Precision, Side, Step

Blocks = Sequence[Sequence[Step]]
"""The steps of each round."""


@dataclass(frozen=True)
class Measured:
    """One side on one workload in one precision; times are of a step."""

    workload: str
    side: Side
    precision: Precision
    seconds: float
    """Median."""
    fastest: float
    slowest: float
    processor_seconds: float
    """Median, of all threads."""
    times_as_fast: float
    """How many times as fast ours of the same precision is: median over the rounds; 1 for ourselves."""
    times_lowest: float
    """The same of the worst round for ours."""
    times_highest: float
    """And of the best."""
    processor_ratio: float
    """The side's processor seconds by ours, median over the rounds."""
    floor_ratio: float | None
    """Our seconds over those of the same operations at the speed of the matrix products alone, median over the steps;
    None of a peer."""
    times_fp32: float | None
    """How many times as fast as the same side in float32 it is, median over the rounds; None of float32 itself, and
    where that was not measured in the same run."""


def measured(
    workload: str, side: Side, precision: Precision, blocks: Blocks, own: Blocks, fp32: Blocks | None
) -> Measured:
    """The numbers of a side's `blocks`, beside our own ones of the same precision and, where there are, its ones in
    float32."""
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
    """For each round the median step of the one over that of the other."""
    return [_median(one, processor) / _median(other, processor) for one, other in zip(blocks, others, strict=True)]


def _median(block: Sequence[Step], processor: bool) -> float:
    return statistics.median(step.processor_seconds if processor else step.seconds for step in block)
