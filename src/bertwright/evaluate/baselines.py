"""What guessing without reading the context would score on the same masked tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

AT_ONCE = 1 << 22


def token_counts(tokens: NDArray[Any], vocabulary_size: int) -> NDArray[np.int64]:
    """How often each entry occurs in a (memory-mapped) array of ids, read 4 Mi ids at a time: [vocabulary_size]."""
    counts = np.zeros(vocabulary_size, np.int64)
    for start in range(0, len(tokens), AT_ONCE):
        counts += np.bincount(tokens[start : start + AT_ONCE], minlength=vocabulary_size)
    return counts


def baselines(training: NDArray[np.int64], labels: NDArray[np.int64]) -> dict[str, float | int]:
    """Scores of the training tokens' distribution on held-out `labels`, given its counts.

    `unigram_loss` is the mean of -log p(label) in nats, p with one added to every count (so an entry that training
    never saw has a probability); `commonest_accuracy` the share of labels that are the commonest training token.
    """
    log_p = np.log(training + 1.0) - np.log(training.sum() + len(training))
    commonest = int(training.argmax())
    return {
        "unigram_loss": -float(log_p[labels].mean()),
        "commonest_accuracy": float((labels == commonest).mean()),
        "commonest_id": commonest,
    }


def majority(labels: Iterable[int]) -> float:
    """The share of the commoner of two labels: what always guessing it would score."""
    share = float(np.mean(np.fromiter(labels, np.int64)))
    return max(share, 1 - share)
