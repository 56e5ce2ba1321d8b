"""The scores of guessing without context, on the same masked tokens."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from bertwright.examples.frequencies import log_probabilities


def baselines(training: NDArray[np.int64], labels: NDArray[np.int64]) -> dict[str, float | int]:
    """Scores of the training tokens' distribution, given its counts [V], on held-out `labels` [N].

    `unigram_loss` is the mean of -log p(label) in nats, with one added to every count in p (so that entries unseen in
    training have a probability); `most_common_token_accuracy` is the share of labels equal to the most common training
    token.
    """
    log_p = log_probabilities(training)
    # From the training text: a guesser does not know the most common held-out token.
    commonest = int(training.argmax())
    return {
        "unigram_loss": -float(log_p[labels].mean()),
        "most_common_token_accuracy": float((labels == commonest).mean()),
        "most_common_id": commonest,
    }


def majority(labels: Iterable[int]) -> float:
    """The share of the more common of two labels, which always guessing it would score."""
    share = float(np.mean(np.fromiter(labels, np.int64)))
    return max(share, 1 - share)
