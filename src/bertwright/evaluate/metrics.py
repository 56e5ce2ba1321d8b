"""The scores of GLUE (Wang et al. 2019 table 1), in float64: accuracy, F1 and Matthews' correlation for classes,
Pearson's and Spearman's correlation for numbers. Undefined scores (a constant has no correlation) are None."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Classes = NDArray[np.int64]
Numbers = NDArray[np.float64]


def of_classes(guessed: Classes, right: Classes, classes: int) -> dict[str, float | None]:
    """`accuracy`, `f1` and `matthews` of guesses [N] against correct classes [N].

    With two classes `f1` is that of class 1, as in GLUE; with more it is the mean over the classes, and `matthews` is
    Gorodkin's R_K.
    """
    table = np.zeros((classes, classes), np.float64)
    np.add.at(table, (right, guessed), 1)
    hits, of_right, of_guessed = np.diag(table), table.sum(1), table.sum(0)
    both = of_right + of_guessed
    # Classes that were neither guessed nor present are left out of the mean.
    f1 = 2 * hits[both > 0] / both[both > 0] if classes > 2 else 2 * hits[1:] / np.maximum(both[1:], 1)
    total = table.sum()
    spread = np.sqrt(total**2 - of_guessed @ of_guessed) * np.sqrt(total**2 - of_right @ of_right)
    matthews = float((hits.sum() * total - of_right @ of_guessed) / spread) if spread else None
    return {"accuracy": float(hits.sum() / total), "f1": float(f1.mean()), "matthews": matthews}


def of_numbers(answered: Numbers, right: Numbers) -> dict[str, float | None]:
    """`pearson` and `spearman` of answers [N] against correct numbers [N]."""
    return {"pearson": _correlation(answered, right), "spearman": _correlation(_ranks(answered), _ranks(right))}


def _correlation(x: Numbers, y: Numbers) -> float | None:
    # Not detected by the spread: the mean of a constant is rounded, so its deviations may differ from 0.
    if x.min() == x.max() or y.min() == y.max():
        return None
    x, y = x - x.mean(), y - y.mean()
    spread = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / spread if spread else None


def _ranks(values: Numbers) -> Numbers:
    """[N] ranks from 1; equal values share the mean of their ranks."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: Numbers = (ends - (counts - 1) / 2)[group]
    return ranks
