"""Intervals of scores, by resampling the items of an exam (Efron 1979)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SAMPLES = 1_000


class Interval(NamedTuple):
    """A score, and where 95 of 100 exams with other items of the same kind would put it."""

    value: float
    low: float
    high: float


def interval_of_mean(items: NDArray[np.float64]) -> Interval:
    """The mean of the scores of N items [N], with its bootstrap percentile interval; always the same for the same
    items."""
    return interval(items, lambda chosen: chosen.mean(1))


def interval_of_mean_difference(items: Sequence[float], others: Sequence[float]) -> Interval:
    """The mean of the differences between the scores of the same items by two models, [N] each, with its interval:
    narrower than those of the models allow, because both find the same items hard."""
    return interval_of_mean(np.asarray(items, np.float64) - np.asarray(others, np.float64))


def interval(items: NDArray[np.float64], score: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> Interval:
    """The score of N items [N, ...], with its bootstrap percentile interval; `score` maps [S, N, ...] to [S]."""
    random = np.random.default_rng(0)
    found = np.concatenate([score(items[random.integers(len(items), size=(1, len(items)))]) for _ in range(SAMPLES)])
    low, high = np.quantile(found, (0.025, 0.975)).tolist()
    return Interval(float(score(items[None])[0]), low, high)
